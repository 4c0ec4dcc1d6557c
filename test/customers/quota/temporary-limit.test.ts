/** Limits and suspensions that end by themselves, decided request by request while clock, records and plans change. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BurstLimiter } from '../../../src/customers/quota/burst.ts';
import { ConcurrencyLimiter } from '../../../src/customers/quota/concurrency.ts';
import { CustomerQuota } from '../../../src/customers/quota/customer-quota.ts';
import type { QuotaSettings } from '../../../src/customers/quota/hourly-quota.ts';
import type { LeasedQuota } from '../../../src/customers/quota/leased-quota.ts';
import { type CustomerFields, customerFields, customerRecordFrom } from '../../../src/store/record-fields.ts';

const START_MS = Date.parse('2026-03-01T12:00:00Z');

const limit = fc.constantFrom(1, 2, 1000, 5_000_000_000);
const time = fc.integer({ min: -5, max: 20 }).map((minutes) => new Date(START_MS + minutes * 60_000).toISOString());
const badLimit = fc.constantFrom('0', '-1', '1e9', '1000.0', ' 5', '9007199254740993', 'NaN', '__proto__');
const badTime = fc.constantFrom('tomorrow', '2026-02-30T00:00:00Z', '2026-03-01T12:10:00', '1772366400', ' ', '+1d');
const unset = fc.constantFrom(undefined, '', null);
const fields: fc.Arbitrary<CustomerFields> = fc.record({
  plan: fc.constantFrom('starter', 'enterprise', 'gone'),
  requests_per_hour: fc.oneof(limit.map(String), unset),
  temporary_requests_per_hour: fc.oneof({ weight: 3, arbitrary: limit.map(String) }, badLimit, unset),
  temporary_until: fc.oneof({ weight: 3, arbitrary: time }, badTime, unset),
  suspended: fc.constantFrom('1', 'true', '0', 'false', '', undefined),
  suspended_until: fc.oneof({ weight: 3, arbitrary: time }, badTime, unset),
}) as fc.Arbitrary<CustomerFields>;
const steps = fc.array(
  fc.record(
    {
      /** The clock may go back. */
      minutes: fc.integer({ min: -3, max: 10 }),
      fields,
      override: fc.option(limit),
      starter: limit,
    },
    { requiredKeys: ['minutes'] },
  ),
  { maxLength: 20 },
);

/** A time as the tests write it; anything else is unreadable. */
const timeOf = (text: string | null | undefined) =>
  /^2026-03-01T1[12]:\d\d:00\.000Z$/.test(text ?? '') ? Date.parse(text ?? '') : undefined;
const numberOf = (text: string | null | undefined) =>
  /^(1|2|1000|5000000000)$/.test(text ?? '') ? Number(text) : undefined;

/** Written anew from the contract: the override, the temporary limit until it ends, the customer's own, the plan. */
function expected(record: CustomerFields, override: number | null, starter: number, nowMs: number) {
  const suspendedUntil = timeOf(record.suspended_until);
  const isSuspended =
    ['1', 'true'].includes(record.suspended ?? '') && (suspendedUntil === undefined || nowMs < suspendedUntil);
  const plan = { starter, enterprise: undefined }[record.plan ?? ''];
  if (record.plan === 'gone') return { isSuspended, limit: undefined };
  const [temporary, until] = [numberOf(record.temporary_requests_per_hour), timeOf(record.temporary_until)];
  const isTemporary = temporary !== undefined && until !== undefined && nowMs < until;
  return { isSuspended, limit: override ?? (isTemporary ? temporary : (numberOf(record.requests_per_hour) ?? plan)) };
}

describe('at each moment, between changes of records, reloads and jumps of the clock', () => {
  it('the limit and the suspension are those of the contract', () => {
    const property = fc.property(fields, limit, steps, (first, firstStarter, then) => {
      let nowMs = START_MS;
      let [record, override, starter] = [first, null as number | null, firstStarter];
      const clock = { nowMs: () => nowMs, monotonicMs: () => 0 };
      const asked: number[] = [];
      const admit = (_: string, { limits }: QuotaSettings) => {
        asked.push(limits[0].amount);
        return { outcome: 'refused', mode: 'lease', violated: limits, resetSeconds: () => 1 };
      };
      const policy = () => ({
        plans: new Map<string, { requestsPerHour: number | 'custom' }>([
          ['starter', { requestsPerHour: starter }],
          ['enterprise', { requestsPerHour: 'custom' }],
        ]),
        formerPlans: new Map(),
        overrides: new Map(override === null ? [] : [['acme', { requestsPerHour: override }]]),
      });
      const quota = new CustomerQuota({
        limits: policy(),
        clock,
        bursts: new BurstLimiter(clock, 1),
        concurrency: new ConcurrencyLimiter(),
        hourly: { admit } as unknown as LeasedQuota,
        recentUsage: undefined as never,
      });
      for (const step of [{ minutes: 0 }, ...then]) {
        nowMs += step.minutes * 60_000;
        if ('fields' in step && step.fields) record = step.fields;
        if ('override' in step) override = step.override ?? null;
        if ('starter' in step && step.starter) starter = step.starter;
        quota.applyLimits(policy());
        const customer = customerRecordFrom('acme', record);
        if (customer === undefined) throw new Error('the record has a plan');
        const wanted = expected(record, override, starter, nowMs);
        expect(quota.isSuspended(customer)).toBe(wanted.isSuspended);
        const found = quota.limitOf(customer);
        expect(found.found ? found.requestsPerHour : undefined).toBe(wanted.limit);
        // What is shown for the time after is what applies then, if nothing else changes.
        if (found.found && found.until !== undefined) {
          expect(found.until.then).toBe(expected(record, override, starter, found.until.atMs).limit);
        }
        asked.length = 0;
        quota.decide(customer);
        expect(asked).toEqual(wanted.limit === undefined ? [] : [wanted.limit]);
      }
    });
    fc.assert(property, { numRuns: 500 });
  });
});

it('what is written of a limit and a suspension for a time is read back the same, and null unsets both fields', () => {
  const record = {
    id: 'acme',
    plan: 'starter',
    temporaryLimit: { requestsPerHour: 2000, untilMs: START_MS },
    suspended: true,
    suspendedUntilMs: START_MS + 1,
  };
  expect(customerRecordFrom('acme', customerFields(record))).toEqual(record);
  expect(customerFields({ temporaryLimit: null, suspendedUntilMs: null })).toEqual({
    temporary_requests_per_hour: null,
    temporary_until: null,
    suspended_until: null,
  });
});
