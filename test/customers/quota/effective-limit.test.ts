import { describe, expect, it } from 'vitest';
import {
  effectiveLimit,
  type LimitPolicy,
  limitOrigin,
  secondsUntilUnits,
} from '../../../src/customers/quota/effective-limit.ts';
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

describe('the limit of a period', () => {
  const periods: LimitPolicy = {
    plans: new Map([
      ['daily', { requestsPerHour: 60, period: { per: 'day', requests: 500, beyond: 'refuse' } } as const],
      ['custom', { requestsPerHour: 60, period: { per: 'month', requests: 'custom', beyond: 'allow' } } as const],
      ['hourly', { requestsPerHour: 60 }],
    ]),
    formerPlans: new Map(),
    overrides: new Map([
      ['acme', { periodRequests: 9000 }],
      ['globex', { requestsPerHour: 7 }],
    ]),
  };
  const periodOf = (record: Partial<CustomerRecord>) => effectiveLimit(customer(record), periods, NO_CLOCK);
  const day = { per: 'day', beyond: 'refuse' };
  const month = { per: 'month', beyond: 'allow' };

  it.each<[string, Partial<CustomerRecord>, object]>([
    ['the plan', { plan: 'daily' }, { ...day, requests: 500, source: 'plan' }],
    ["the customer's own", { plan: 'daily', periodRequests: 7 }, { ...day, requests: 7, source: 'customer' }],
    ['own, on a custom one', { plan: 'custom', periodRequests: 7 }, { ...month, requests: 7, source: 'customer' }],
    [
      'the override, before all else',
      { id: 'acme', plan: 'custom', periodRequests: 'invalid' },
      { ...month, requests: 9000, source: 'override' },
    ],
    [
      'the plan, beside an override of the hour alone',
      { id: 'globex', plan: 'daily' },
      { ...day, requests: 500, source: 'plan' },
    ],
  ])('comes from %s', (_, record, period) => {
    expect(periodOf(record)).toMatchObject({ found: true, period });
  });

  it('leaves the limit of the hour alone, which an override of the period does not set', () => {
    expect(periodOf({ id: 'acme', plan: 'daily' })).toMatchObject({ requestsPerHour: 60, source: 'plan' });
    expect(periodOf({ id: 'globex', plan: 'daily' })).toMatchObject({ requestsPerHour: 7, source: 'override' });
  });

  it('does not exist on a plan without a period, whatever the record says', () => {
    for (const periodRequests of [7, 'invalid'] as const) {
      expect(periodOf({ plan: 'hourly', periodRequests })).toEqual({
        found: true,
        requestsPerHour: 60,
        source: 'plan',
      });
    }
  });

  it('is missing where a custom period has no number or an unreadable one, and then there is no limit at all', () => {
    const origins = { plans: new Map(), overrides: new Map() };
    for (const [record, reason] of [
      [{ plan: 'custom' }, 'the customer has no period_requests'],
      [{ plan: 'daily', periodRequests: 'invalid' }, "the customer record's period_requests is not an integer"],
    ] as const) {
      const limit = periodOf(record);
      expect(limit).toMatchObject({ found: false, reason: expect.stringContaining(reason) });
      expect(limitOrigin(customer(record), limit, origins)).toBe('customer record: period_requests');
    }
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
