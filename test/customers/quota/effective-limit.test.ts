import { describe, expect, it } from 'vitest';
import { effectiveLimit, limitOrigin, secondsUntilUnits } from '../../../src/customers/quota/effective-limit.ts';
import type { CustomerRecord } from '../../../src/store/record-fields.ts';

const policy = {
  plans: new Map<string, { requestsPerHour: number | 'custom' }>([
    ['starter', { requestsPerHour: 1000 }],
    ['enterprise', { requestsPerHour: 'custom' }],
  ]),
  formerPlans: new Map([['basic', 'starter']]),
  overrides: new Map([['acme', { requestsPerHour: 120_000 }]]),
};

/** A customer without a temporary limit costs no look at the clock. */
const NO_CLOCK = {
  nowMs(): number {
    throw new Error('the clock was read');
  },
};

function customer(record: Partial<CustomerRecord>): CustomerRecord {
  return { id: 'c', plan: 'starter', suspended: false, ...record };
}

describe('the limit is taken from', () => {
  it.each([
    ['the override, before all else', customer({ id: 'acme', requestsPerHour: 7 }), 120_000, 'override'],
    ['the override of a custom plan', customer({ id: 'acme', plan: 'enterprise' }), 120_000, 'override'],
    [
      'the override, though the record is bad',
      customer({ id: 'acme', requestsPerHour: 'invalid' }),
      120_000,
      'override',
    ],
    ["the customer's own number, on any plan", customer({ requestsPerHour: 7 }), 7, 'customer'],
    [
      "the customer's own number, on a custom plan",
      customer({ plan: 'enterprise', requestsPerHour: 9 }),
      9,
      'customer',
    ],
    ['the plan', customer({}), 1000, 'plan'],
  ])('%s', (_, record, requestsPerHour, source) => {
    expect(effectiveLimit(record, policy, NO_CLOCK)).toEqual({ found: true, requestsPerHour, source });
  });
});

describe('there is no limit when', () => {
  it.each([
    ['the plan is not configured', customer({ plan: 'gold' }), 'no plan "gold"'],
    [
      'the plan is not configured, whatever else is set',
      customer({ id: 'acme', plan: 'gold', requestsPerHour: 5 }),
      'no plan "gold"',
    ],
    ['a custom plan has no number', customer({ plan: 'enterprise' }), 'no requests_per_hour'],
    ['the number is not one', customer({ requestsPerHour: 'invalid' }), 'not an integer'],
  ])('%s', (_, record, reason) => {
    const limit = effectiveLimit(record, policy, NO_CLOCK);
    expect(limit.found ? '' : limit.reason).toContain(reason);
  });
});

describe('a limit is explained by', () => {
  const origins = {
    plans: new Map([
      ['starter', 'gateway.yaml:4'],
      ['enterprise', 'gateway.yaml:5'],
    ]),
    overrides: new Map([['acme', 'gateway.yaml:9']]),
  };

  it.each([
    ['the line of the override', customer({ id: 'acme', requestsPerHour: 7 }), 'gateway.yaml:9'],
    ['the field of the record', customer({ requestsPerHour: 7 }), 'customer record: requests_per_hour'],
    ['the line of the plan', customer({}), 'gateway.yaml:4'],
    ['the plan of the record, which is unknown', customer({ id: 'acme', plan: 'gold' }), 'customer record: plan'],
    ['the number that is missing', customer({ plan: 'enterprise' }), 'customer record: requests_per_hour'],
    ['the number that is none', customer({ requestsPerHour: 'invalid' }), 'customer record: requests_per_hour'],
  ])('%s', (_, record, origin) => {
    expect(limitOrigin(record, effectiveLimit(record, policy, NO_CLOCK), origins)).toBe(origin);
  });
});

describe('a refused request may try again', () => {
  const limit = (then: number) =>
    ({ found: true, requestsPerHour: 20, source: 'temporary', until: { atMs: 60_000, then } }) as const;

  it.each([
    { next: 30, used: 20, units: 1, seconds: 61 },
    { next: 30, used: 20, units: 10, seconds: 61 },
    { next: 30, used: 20, units: 11, seconds: 3000 },
    { next: 20, used: 20, units: 1, seconds: 3000 },
  ])('in $seconds s if the limit is $next in a minute, $used are used, and it takes $units', (each) => {
    expect(secondsUntilUnits(3000, each.used, limit(each.next), { nowMs: () => 0 }, each.units)).toBe(each.seconds);
  });
});
