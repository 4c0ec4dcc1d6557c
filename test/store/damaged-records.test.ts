/** Reports of records that other programs wrote wrongly: all are counted, and a flood of them does not fill the log. */
import { expect, test } from 'vitest';
import type { RecordDamage } from '../../src/store/observer.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { DamagedRecords } from '../../src/store/redis/records/damaged-records.ts';

function setUp() {
  let nowMs = 0;
  const seen: { damage: RecordDamage; isReported: boolean }[] = [];
  const damaged = new DamagedRecords({
    names: redisKeyNames('test'),
    clock: { nowMs: () => 0, monotonicMs: () => nowMs },
    observer: { damagedRecord: (damage, isReported) => void seen.push({ damage, isReported }) },
  });
  return {
    seen,
    see: (number: number) => damaged.checkKey(String(number).padEnd(64, '0'), { id: 'k' }),
    passMs: (ms: number) => {
      nowMs += ms;
    },
    damaged,
  };
}

test('a record is reported once a minute, and counted each time', () => {
  const { seen, see, passMs } = setUp();
  see(1);
  see(1);
  see(2);
  passMs(60_000);
  see(1);
  expect(seen.map(({ isReported }) => isReported)).toEqual([true, false, true, true]);
});

test('of more than a hundred damaged records a hundred are reported in a minute, and all are counted', () => {
  const { seen, see, passMs } = setUp();
  for (let i = 1; i <= 1000; i++) see(i);
  expect(seen).toHaveLength(1000);
  expect(seen.filter(({ isReported }) => isReported)).toHaveLength(100);
  passMs(60_000);
  see(1001);
  expect(seen.at(-1)?.isReported).toBe(true);
});

test('a record that is not there, or has all that it needs, is not damaged', () => {
  const { seen, damaged } = setUp();
  const unset = { id: null, customer: null, expires_at: null, revoked_at: null, replaced_by: null };
  damaged.checkKey('a'.repeat(64), unset);
  damaged.checkKey('a'.repeat(64), { ...unset, id: 'k', customer: 'acme', expires_at: '', revoked_at: '1' });
  damaged.checkCustomer('acme', { plan: null, requests_per_hour: null, suspended: null, usage_reset_at: null });
  damaged.checkCustomer('acme', { plan: 'starter', requests_per_hour: 'many' });
  expect(seen).toEqual([]);
});

test('an anchor that is not a whole hour is reported with the record', () => {
  const { seen, damaged } = setUp();
  for (const anchor of ['2026-01-31T10:00:00Z', '2026-01-31T12:00:00+02:00']) {
    damaged.checkCustomer('acme', { plan: 'starter', period_anchor: anchor });
  }
  expect(seen).toEqual([]);
  for (const anchor of ['2026-01-31T10:30:00Z', '31', '2026-02-30T10:00:00Z']) {
    damaged.checkCustomer(anchor, { plan: 'starter', period_anchor: anchor });
  }
  expect(seen.map(({ damage }) => damage.fault.code)).toEqual(
    Array.from({ length: 3 }, () => 'unreadable_period_anchor'),
  );
});
