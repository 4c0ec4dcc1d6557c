/** Which notices an instance makes of what the store tells it; the store decides whether there is one already. */
import { expect, test } from 'vitest';
import { LevelObserver } from '../../../src/customers/notices/level-observer.ts';
import { parseNotice } from '../../../src/customers/notices/notice.ts';
import type { MarkedNotice, Marks } from '../../../src/store/notices.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';

const LIMIT = 1000;
const START_MS = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;
const PERIOD = { startHour: START_MS / HOUR_MS, endHour: START_MS / HOUR_MS + 31 * 24 };
/** Of the lease that each reply grants. */
const HOLD_MS = 2000;
/** By then a level is decided. */
const DECIDED_MS = HOLD_MS + 2000;

function observe(levels: readonly number[] | undefined) {
  const time = new VirtualTime();
  const added: MarkedNotice[] = [];
  const extended: Marks[] = [];
  const created: string[] = [];
  const store = { counts: false, isUp: true, settled: undefined as number | undefined, used: 0, ofKeys: 0 };
  /** The period, and units of open leases in it. */
  const period = { counted: 0, forgiven: 0, leased: 0 };
  const reply = async <T>(value: T) => {
    if (!store.isUp) throw new Error('away');
    return value;
  };
  const observer = new LevelObserver(
    {
      notices: {
        extend: (marks) => reply(extended.push(marks) > 0 && store.counts),
        addOnce: (marked) => reply(added.push(marked) > 0),
      },
      usages: {
        settledOf: (_customer, root) => reply(root === undefined ? (store.settled ?? store.used) : store.ofKeys),
        usedOf: () => reply([(store.settled ?? store.used) + period.leased]),
      },
      periods: {
        periodsOf: () => {
          const [startMs, endMs] = [PERIOD.startHour * HOUR_MS, PERIOD.endHour * HOUR_MS];
          const { counted: used, forgiven } = period;
          const stored = { plan: 'starter', startMs, endMs, included: LIMIT, used, forgiven, overage: 0 };
          return reply([{ periods: [{ ...stored, endMs: endMs + HOUR_MS }, stored], isDamaged: false }]);
        },
      },
      created: (type: string) => created.push(type),
      customers: 10,
      clock: { monotonicMs: () => time.nowMs },
      scheduler: {
        after: (delayMs, action) => {
          time.in(delayMs, action);
          return { cancel: () => {} };
        },
      },
    },
    levels,
  );
  return {
    observer,
    added,
    extended,
    created,
    store,
    time,
    /** A reply, and then as much time. */
    async use(used: number, thenMs = 0, limit = LIMIT, epoch = 'first') {
      store.used = used;
      const storeTimeMs = START_MS + time.nowMs;
      if (100 * used >= observer.lowestPercent * limit) {
        const count = { used, waitMs: 41_000, storeTimeMs, holdEndMs: storeTimeMs + HOLD_MS, epoch };
        observer.reached('acme', limit, { policy: 'hourly', ...count });
      }
      await time.run(thenMs);
    },
    /** The same of a key. Its customer's usage stays. */
    async useWith(keyId: string, used: number, thenMs = DECIDED_MS, limit = LIMIT, root = 'first:key}') {
      store.ofKeys = used;
      const storeTimeMs = START_MS + time.nowMs;
      const count = { used, waitMs: 41_000, storeTimeMs, holdEndMs: storeTimeMs + HOLD_MS, epoch: 'of key' };
      const ceiling = { limit: { policy: 'key', amount: limit, root } as const, keyId, leases: '', usageResetAt: '' };
      observer.reached('acme', limit, { policy: 'key', ...count }, ceiling);
      await time.run(thenMs);
    },
    period,
    /** The same of a month. */
    async useInMonth(counted: number, thenMs = DECIDED_MS, beyond: 'refuse' | 'allow' = 'refuse', limit = LIMIT) {
      period.counted = counted;
      const used = counted - period.forgiven;
      const storeTimeMs = START_MS + time.nowMs;
      const count = { used, waitMs: 41_000, storeTimeMs, holdEndMs: storeTimeMs + HOLD_MS, epoch: '' };
      observer.reached('acme', limit, { policy: 'monthly', period: { ...PERIOD, beyond }, ...count });
      await time.run(thenMs);
    },
    levels: () => added.map(({ marks: [first] }) => first),
  };
}

test('only the highest level that was reached has a notice, and a limit that is used up always is one', async () => {
  const { use, levels, added, created } = observe([95, 80]);
  for (const used of [799, 800, 949, 950, 999, 1000, 1200]) await use(used, DECIDED_MS);
  expect(levels()).toEqual(['level:1000:80', 'level:1000:95', 'level:1000:100']);
  expect(added.at(-1)?.marks).toEqual(['level:1000:100', 'level:1000:80', 'level:1000:95']);
  expect(created).toEqual(['quota.threshold', 'quota.threshold', 'quota.exceeded']);
});

test('usage that jumps has one notice, of the highest level', async () => {
  const { use, levels } = observe([95, 80]);
  await use(810, 500);
  await use(970, DECIDED_MS + HOLD_MS);
  expect(levels()).toEqual(['level:1000:95']);
});

test('a level that a reply shows while a lower one is looked up has its notice', async () => {
  const { use, levels, time } = observe([80]);
  // No promise settles between these calls.
  void use(750);
  void use(801);
  await time.run(DECIDED_MS);
  expect(levels()).toEqual(['level:1000:80']);
});

test('a level that was reached by units of open leases has no notice unless requests use them', async () => {
  const { use, levels, store } = observe([80]);
  store.settled = 750;
  await use(810, DECIDED_MS);
  expect(levels()).toEqual([]);
  // A later reply raises the question again.
  store.settled = 805;
  await use(806, DECIDED_MS);
  expect(levels()).toEqual(['level:1000:80']);
});

test('what a reply showed while an earlier one was being decided is decided too', async () => {
  const { use, levels, store, time } = observe([80]);
  store.settled = 790;
  await use(801, HOLD_MS);
  await use(802, DECIDED_MS - HOLD_MS);
  expect(levels()).toEqual([]);
  store.settled = 802;
  await time.run(DECIDED_MS);
  expect(levels()).toEqual(['level:1000:80']);
});

test('a limit was used up even if a few of its units have expired since, or were taken just now', async () => {
  const { use, levels, store, added } = observe([80]);
  store.counts = false;
  store.settled = 990;
  await use(999, DECIDED_MS);
  await use(1000, DECIDED_MS);
  expect(levels()).toEqual(['level:1000:80', 'level:1000:100']);
  expect(parseNotice(added[1]?.notice.content ?? '')?.data).toMatchObject({ used: 1000, percent: 100 });
  store.settled = 989;
  await use(1000, 100_000, LIMIT);
  expect(levels().slice(2)).not.toContain('level:1000:100');
});

test('a mark that counts is extended once a minute while usage is within ten points of its level', async () => {
  const { use, levels, extended, store } = observe([80]);
  store.counts = true;
  await use(699, 1000);
  expect(extended).toEqual([]);
  await use(701, 59_000);
  await use(702, 1000);
  expect(extended.map(({ marks }) => marks)).toEqual([['level:1000:0', 'level:1000:80']]);
  await use(703, 0);
  await use(805, 0);
  expect(extended.slice(1).map(({ marks }) => marks)).toEqual([['level:1000:0', 'level:1000:80'], ['level:1000:80']]);
  const hourMs = 3_600_000;
  for (const { untilMs } of extended) expect(untilMs).toBeGreaterThan(START_MS + hourMs);
  expect(levels()).toEqual([]);
});

test('another limit is handled at once', async () => {
  const { use, levels } = observe([80]);
  await use(800, DECIDED_MS);
  await use(1700, DECIDED_MS, 2000);
  expect(levels()).toEqual(['level:1000:80', 'level:2000:80']);
});

test('a customer that is deleted and created again within a minute has its own notice', async () => {
  const { use, levels } = observe([80]);
  await use(1000, DECIDED_MS);
  await use(1000, DECIDED_MS, LIMIT, 'of the new customer');
  expect(levels()).toEqual(['level:1000:100', 'level:1000:100']);
});

test('a notice that could not be stored is made by a later reply, at most every five seconds', async () => {
  const { use, levels, extended, store } = observe([80]);
  store.isUp = false;
  await use(800, 10);
  await use(801, 4900);
  expect(extended).toHaveLength(1);
  store.isUp = true;
  await use(802, 100);
  await use(803, DECIDED_MS);
  expect(extended).toHaveLength(2);
  expect(levels()).toEqual(['level:1000:80']);
});

test('without notices there are none, whatever a reload changes before', async () => {
  const { observer, use, levels, added } = observe(undefined);
  await use(5000, DECIDED_MS);
  expect(levels()).toEqual([]);
  observer.applyLevels([]);
  await use(999, DECIDED_MS);
  await use(1000, DECIDED_MS);
  expect(levels()).toEqual(['level:1000:100']);
  expect(parseNotice(added[0]?.notice.content ?? '')).toMatchObject({
    type: 'quota.exceeded',
    timestamp: new Date(START_MS + 2 * DECIDED_MS).toISOString(),
    data: { customer: 'acme', limit: LIMIT, used: 1000, percent: 100, reset_seconds: 41 },
  });
  observer.applyLevels(undefined);
  await use(5000, DECIDED_MS);
  expect(levels()).toEqual(['level:1000:100']);
});

test('the levels of a month have notices of their own, with its numbers, beside those of the hour', async () => {
  const { use, useInMonth, levels, added } = observe([80]);
  for (const counted of [700, 800, 990, 1000]) await useInMonth(counted);
  const month = `level:monthly:${PERIOD.startHour}`;
  expect(levels()).toEqual([`${month}:1000:80`, `${month}:100`]);
  expect(added[1]?.marks).toEqual([`${month}:100`, `${month}:1000:80`]);
  // They count until the end of the month.
  for (const { untilMs } of added) expect(untilMs).toBeGreaterThan(PERIOD.endHour * HOUR_MS);
  await use(800, DECIDED_MS);
  expect(levels()[2]).toBe('level:1000:80');
  expect(added.map(({ notice }) => parseNotice(notice.content)?.data)).toEqual([
    expect.objectContaining({ window: 'monthly', beyond: 'refuse', limit: LIMIT, used: 800, percent: 80 }),
    expect.objectContaining({ window: 'monthly', beyond: 'refuse', limit: LIMIT, used: 1000, percent: 100 }),
    { customer: 'acme', plan: null, limit: LIMIT, used: 800, percent: 80, reset_seconds: 41, window: 'hourly' },
  ]);
});

test('a month that may be exceeded is used up when all of its units are, and says that requests are served', async () => {
  const { useInMonth, levels, added, period } = observe([]);
  period.leased = 10;
  await useInMonth(1005, DECIDED_MS, 'allow');
  expect(levels()).toEqual([]);
  await useInMonth(1012, DECIDED_MS, 'allow');
  const { type, data } = parseNotice(added[0]?.notice.content ?? '') ?? {};
  expect([type, data]).toEqual(['quota.exceeded', expect.objectContaining({ beyond: 'allow', used: 1002 })]);
});

test('a month whose limit is raised, or whose usage is forgiven, has the same mark when it is used up again', async () => {
  const { useInMonth, levels, period } = observe([80]);
  await useInMonth(1000);
  await useInMonth(2000, DECIDED_MS, 'refuse', 2000);
  period.forgiven = 2000;
  await useInMonth(4000, DECIDED_MS, 'refuse', 2000);
  expect(new Set(levels())).toEqual(new Set([`level:monthly:${PERIOD.startHour}:100`]));
});

test('units of open leases, and those forgiven, are no usage of a month', async () => {
  const { useInMonth, levels, period } = observe([80]);
  period.leased = 50;
  await useInMonth(849);
  expect(levels()).toEqual([]);
  Object.assign(period, { leased: 0, forgiven: 100 });
  await useInMonth(899, 100_000);
  expect(levels()).toEqual([]);
  await useInMonth(900);
  expect(levels()).toHaveLength(1);
});

test('the limit of a key has notices of its own that name the key, and is no usage of its customer', async () => {
  const { use, useWith, levels, added, extended } = observe([80]);
  await use(100, DECIDED_MS);
  await useWith('one', 800);
  await useWith('one', 1000);
  expect(levels()).toEqual(['level:key:first:key}:1000:80', 'level:key:first:key}:1000:100']);
  expect(added[1]?.marks).toEqual(['level:key:first:key}:1000:100', 'level:key:first:key}:1000:80']);
  expect(extended.flatMap(({ marks }) => marks).every((mark) => mark.startsWith('level:key:'))).toBe(true);
  const common = { customer: 'acme', plan: null, limit: LIMIT, reset_seconds: 41, window: 'key', key_id: 'one' };
  expect(added.map(({ notice }) => parseNotice(notice.content)?.data)).toEqual([
    { ...common, used: 800, percent: 80 },
    { ...common, used: 1000, percent: 100 },
  ]);
  // Its customer's levels are still to come.
  await use(800, DECIDED_MS);
  expect(levels()[2]).toBe('level:1000:80');
});

test('a key that was rotated has the marks of its line, and other keys and limits have their own', async () => {
  const { useWith, levels, extended, store } = observe([80]);
  await useWith('one', 800);
  store.counts = true;
  await useWith('rotated', 805, 100_000);
  expect(extended.at(-1)?.marks[0]).toBe('level:key:first:key}:1000:80');
  store.counts = false;
  await useWith('one', 1700, DECIDED_MS, 2000);
  await useWith('two', 800, DECIDED_MS, LIMIT, 'second');
  expect(levels().slice(1)).toEqual(['level:key:first:key}:2000:80', 'level:key:second:1000:80']);
});
