/** The checker of traces (test/support/traces), with right traces and with those that wrong gateways would write. */
import { describe, expect, test } from 'vitest';
import { type Allowances, checkTraces } from '../../support/traces/check.ts';
import type { AdmittedLocally, Granted, TraceEvent } from '../../support/traces/events.ts';

const START_MS = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;
const LIMIT = 4;

type Change = Partial<Granted>;
type Period = NonNullable<Granted['period']>;

const at = (ms: number, gateway = 'a') => ({ atMs: START_MS + ms, gateway, customer: 'acme' });
/** Granted as soon as asked for, unless `change` says otherwise. */
const granted = (ms: number, grant: string, units: number, used: number, change: Change = {}): Granted => ({
  ...at(ms),
  event: 'granted',
  grant,
  sentMs: START_MS + ms,
  storeTimeMs: START_MS + ms,
  granted: units,
  used,
  limit: LIMIT,
  holdMs: 2000,
  epoch: 'one',
  ...change,
});
const begun = (ms: number, grant: string, gateway = 'a', units = 1): TraceEvent => ({
  ...at(ms, gateway),
  event: 'begun',
  grant,
  units,
});
/** `units`: in total. */
const refunded = (ms: number, grant: string, units: number): TraceEvent => ({
  ...at(ms),
  event: 'refunded',
  grant,
  units,
});
const admittedLocally = (ms: number, units = 1, change: Partial<AdmittedLocally> = {}): TraceEvent => ({
  ...at(ms),
  event: 'admitted locally',
  limit: LIMIT,
  instances: 2,
  units,
  ...change,
});
/** One of 3 units, that ends an hour after the start. */
const day = (used: number, change: Partial<Period> = {}): Change => ({
  period: { name: 'daily 1', limit: 3, beyond: 'refuse', used, endMs: START_MS + HOUR_MS, ...change },
});
const localDay = (free: number | undefined): Partial<AdmittedLocally> => ({
  period: { name: 'daily 1', limit: 3, beyond: 'refuse', free },
});
const charged = (ms: number, grant: string, units: number): TraceEvent => ({
  ...at(ms),
  event: 'charged',
  grant,
  units,
});

const ruleBroken = (events: readonly TraceEvent[], allowances?: Allowances) =>
  checkTraces(events, allowances).violation?.rule;

describe('right traces', () => {
  test('units of two gateways that are used, refunded, charged and used again after an hour break no rule', () => {
    const events = [
      granted(0, '1', 2, 2),
      begun(10, '1'),
      granted(20, '2', 2, 4, { gateway: 'b' }),
      begun(1900, '2', 'b'),
      begun(1990, '2', 'b'),
      refunded(2100, '1', 1),
      refunded(7100, '1', 1),
      granted(3000, '3', 1, 4),
      begun(3000, '3'),
      admittedLocally(5000),
      begun(5001, 'local'),
      charged(6000, 'report', 1),
      charged(11_000, 'report', 1),
      // The reply to its reservation was lost: all that it asked for is refunded.
      refunded(12_000, 'lost', 3),
      granted(HOUR_MS + 13_000, '4', 4, 4),
      begun(HOUR_MS + 13_001, '4'),
    ];
    expect(checkTraces(events)).toMatchObject({
      violation: undefined,
      counts: { grants: 4, units: 9, begins: 6, refunds: 3 },
    });
  });

  test('a store whose clock was set ahead by an hour may grant the limit again', () => {
    const events = [
      granted(0, '1', 4, 4),
      ...[1, 2, 3, 4].map((ms) => begun(ms, '1')),
      granted(5000, '2', 4, 4, { storeTimeMs: START_MS + HOUR_MS + 20_000, epoch: 'two' }),
      ...[5001, 5002, 5003, 5004].map((ms) => begun(ms, '2')),
    ];
    expect(ruleBroken(events)).toBeUndefined();
  });

  test('a store that lost a grant may grant it again, if the test says how many units that are', () => {
    const events = [
      granted(0, '1', 4, 4),
      ...[1, 2, 3, 4].map((ms) => begun(ms, '1')),
      granted(100, '2', 2, 4),
      begun(101, '2'),
      begun(102, '2'),
    ];
    expect(ruleBroken(events)).toBe('counted');
    expect(ruleBroken(events, { lostUnits: 2 })).toBeUndefined();
  });
});

describe('right traces of periods', () => {
  const nextDay = { name: 'daily 25', endMs: START_MS + 25 * HOUR_MS };

  test('a period may use its units again that returned before its end, and so may the next one until the first is closed', () => {
    const endMs = HOUR_MS;
    const events = [
      granted(endMs - 5000, '1', 2, 2, day(2)),
      begun(endMs - 4000, '1'),
      refunded(endMs - 3000, '1', 1),
      granted(endMs - 1500, '2', 2, 3, day(3)),
      begun(endMs - 1400, '2'),
      // On a lease of the first day.
      begun(endMs + 400, '2'),
      granted(endMs + 500, '3', 1, 4, day(1, nextDay)),
      begun(endMs + 600, '3'),
    ];
    expect(ruleBroken(events)).toBeUndefined();
  });

  test('a unit that returns to the next period, because its own is closed, may be used there', () => {
    const lateMs = HOUR_MS + 30_000;
    const next = (ms: number, grant: string, units: number, used: number, usedOfDay: number) =>
      granted(ms, grant, units, used, { ...day(usedOfDay, nextDay), limit: 10 });
    const events = (refundMs: number) => [
      granted(HOUR_MS - 1000, '1', 1, 1, { ...day(1), limit: 10 }),
      next(HOUR_MS + 10, '2', 3, 4, 3),
      ...[1, 2, 3].map((ms) => begun(HOUR_MS + 10 + ms, '2')),
      refunded(refundMs, '1', 1),
      next(lateMs + 10, '3', 1, 4, 3),
      begun(lateMs + 20, '3'),
    ];
    expect(ruleBroken(events(lateMs))).toBeUndefined();
    expect(ruleBroken(events(lateMs - 1000))).toBe('counted');
  });

  test('a period that allows more has no bound', () => {
    const beyond = 'allow';
    const events = [granted(0, '1', 4, 4, day(4, { beyond })), ...[1, 2, 3, 4].map((ms) => begun(ms, '1'))];
    expect(ruleBroken(events)).toBeUndefined();
  });

  test('what a gateway has charged of a period is not taken from its share again', () => {
    const events = [
      admittedLocally(1, 1, localDay(2)),
      begun(2, 'local'),
      charged(600, 'report', 1),
      admittedLocally(1000, 1, { ...localDay(2), instances: 1 }),
      admittedLocally(1001, 1, { ...localDay(2), instances: 1 }),
      begun(1002, 'local'),
      begun(1003, 'local'),
    ];
    expect(ruleBroken(events)).toBeUndefined();
  });
});

const whole = granted(0, '1', 4, 4);

/** Named as the mutants of the formal model that write such traces. */
test.each<[string, string, readonly TraceEvent[]]>([
  ['HOLD_FROM_REPLY', 'hold', [granted(500, '1', 1, 1, { storeTimeMs: START_MS, sentMs: START_MS }), begun(2400, '1')]],
  ['BEGIN_UNCHECKED', 'hold', [granted(0, '1', 1, 1), begun(2003, '1')]],
  [
    'DROPPED_EARLY',
    'window',
    [
      whole,
      ...[1, 2, 3, 1900].map((ms) => begun(ms, '1')),
      granted(HOUR_MS + 1000, '2', 1, 1, { epoch: 'two' }),
      begun(HOUR_MS + 1001, '2'),
      granted(HOUR_MS + 1010, '3', 3, 4, { epoch: 'two' }),
      ...[1011, 1012, 1013].map((ms) => begun(HOUR_MS + ms, '3')),
    ],
  ],
  ['CHECK_THEN_COUNT', 'counted', [whole, granted(5, '2', 4, 8, { gateway: 'b' }), begun(6, '1'), begun(7, '2', 'b')]],
  ['a grant that is not counted', 'counted', [whole, begun(1, '1'), begun(2, '1'), granted(10, '2', 1, 2)]],
  [
    'a window that is created again',
    'window',
    [whole, ...[1, 2, 3, 4].map((ms) => begun(ms, '1')), granted(100, '2', 4, 4, { epoch: 'two' }), begun(101, '2')],
  ],
  ['REFUND_TWICE', 'unit', [whole, begun(1, '1'), refunded(2100, '1', 3), refunded(2200, '1', 6)]],
  ['REFUND_BEGUN', 'unit', [whole, begun(1, '1'), refunded(2100, '1', 4)]],
  ['REFUND_ADMITTED', 'unit', [whole, refunded(1500, '1', 4), begun(1600, '1')]],
  ['REFUND_BEFORE_THE_REPLY', 'unit', [refunded(0, '1', 4), whole, begun(1, '1')]],
  ['UNIT_TO_NEWER_LEASE', 'unit', [granted(0, '1', 1, 1), granted(500, '2', 1, 2), begun(600, '2'), begun(601, '2')]],
  ['a request without a unit', 'unit', [begun(1, 'of nobody')]],
  ['a request before its grant', 'hold', [granted(10, '1', 1, 1), begun(9, '1')]],
  ['a request that takes one unit of the two of its route', 'unit', [granted(0, '1', 1, 1), begun(1, '1', 'a', 2)]],
  [
    'requests of several units above the limit',
    'window',
    [
      granted(0, '1', 4, 4),
      begun(1, '1', 'a', 2),
      begun(2, '1', 'a', 2),
      granted(3, '2', 2, 2, { epoch: 'two' }),
      begun(4, '2', 'a', 2),
    ],
  ],
  [
    'requests of several units that are counted as one',
    'counted',
    [granted(0, '1', 2, 2), begun(1, '1', 'a', 2), granted(10, '2', 1, 2)],
  ],
  ['LARGER_LIMIT', 'counted', [granted(0, '1', 4, 4, day(4))]],
  [
    'HOUR_ALONE',
    'counted',
    [granted(0, '1', 2, 2, day(2)), begun(1, '1'), begun(2, '1'), granted(10, '2', 2, 4, day(2))],
  ],
  [
    'a period that begins anew',
    'period',
    [
      granted(0, '1', 2, 2, day(2)),
      begun(1, '1'),
      begun(2, '1'),
      granted(2, '2', 2, 4, day(2)),
      begun(3, '2'),
      begun(4, '2'),
    ],
  ],
  [
    'a share of a period that ignores what is left of it',
    'share',
    [admittedLocally(1, 1, localDay(1)), begun(2, 'local')],
  ],
  [
    'a share of a period that is at least one',
    'share',
    [admittedLocally(1, 1, { ...localDay(undefined), instances: 4 }), begun(2, 'local')],
  ],
  ['requests of several units above the share', 'share', [admittedLocally(1, 3), begun(2, 'local', 'a', 3)]],
  ['LOCAL_WINDOW_AFRESH', 'share', [1, 2, 3].flatMap((ms) => [admittedLocally(ms), begun(ms, 'local')])],
  [
    'CHARGE_WITH_NEW_ID',
    'charge',
    [admittedLocally(1), begun(2, 'local'), charged(600, 'report', 1), charged(1100, 'again', 1)],
  ],
  [
    'other units under the id of a charge',
    'charge',
    [admittedLocally(1), admittedLocally(2), charged(600, 'report', 1), charged(1100, 'report', 2)],
  ],
  [
    'a refund of more than was charged',
    'charge',
    [admittedLocally(1), charged(600, 'report', 1), refunded(700, 'report', 2)],
  ],
])('of a wrong trace (%s) the rule "%s" is named as broken', (_, rule, events) => {
  expect(ruleBroken(events)).toBe(rule);
});

test('the first violation is reported, with the event', () => {
  const late = begun(2500, '1');
  const { violation } = checkTraces([whole, begun(1, '1'), late, begun(2600, '1')]);
  expect(violation).toMatchObject({ rule: 'hold', customer: 'acme', event: late });
});
