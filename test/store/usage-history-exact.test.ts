/**
 * Requests in the usage history: units are counted in the hour of their grant, by the calls that change the quota. What is
 * learnt of an hour after it was closed counts in the hour in which it is learnt.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/embedded-store.ts';
import type { Store } from '../../src/store/store.ts';
import { type CustomerHour, DAY_MS, HOUR_MS, type UsageRetention } from '../../src/store/usage-history.ts';
import { HOURLY, type WindowCharge } from '../../src/store/window-arithmetic.ts';
import { type Grant, hourly } from '../../src/store/windows.ts';
import { HeldClock } from '../customers/keys/held-clock.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { scriptedHistory, scriptedWindows } from './window-scripts-with-clock.ts';

/** Long enough that Redis, whose own clock decides on expiry, deletes nothing of these years. */
const RETENTION: UsageRetention = { hoursDays: 1_000_000, days: 1_000_000 };
const RUNS = 60;
/** An hour is closed this long after its end, and exported twice as long after it. */
const CLOSES_MS = 30_000;

type Step =
  | { readonly kind: 'reserve'; readonly advanceMs: number; readonly need: number; readonly holdMs: number }
  | { readonly kind: 'refund'; readonly stepsAgo: number; readonly units: number }
  | { readonly kind: 'report'; readonly ageMs: number; readonly units: number }
  | { readonly kind: 'reset' | 'delete' | 'lose window' };

interface Windows {
  /** `id`: of the grant, and the epoch of a window that it begins. */
  reserve(nowMs: number, need: number, holdMs: number, id: string): Promise<Grant>;
  /** `units`: in total. */
  refund(nowMs: number, id: string, units: number): Promise<void>;
  charge(nowMs: number, admitted: WindowCharge): Promise<void>;
  reset(): Promise<void>;
  /** Deletes the customer, with its history, and creates it again. */
  delete(): Promise<void>;
  /** Loses the window, but not the history. Undefined where that cannot be. */
  loseWindow?(): Promise<void>;
  hours(fromMs: number, toMs: number): Promise<readonly CustomerHour[]>;
  days(fromMs: number, toMs: number): Promise<readonly { startMs: number; units: number }[]>;
}

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('reserve' as const),
      advanceMs: fc.oneof(fc.nat(20_000), fc.nat(2 * HOUR_MS), fc.nat(40 * DAY_MS)),
      need: fc.nat(20),
      holdMs: fc.constantFrom(2000, 10_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('refund' as const), stepsAgo: fc.nat(3), units: fc.nat(5) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('report' as const), ageMs: fc.nat(5 * HOUR_MS), units: fc.nat(9) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('reset' as const, 'reset', 'reset', 'delete', 'lose window') }),
  },
);

let redis: RedisServer;
let folder: string;
let runs = 0;
beforeAll(async () => {
  redis = await startRedis();
  folder = mkdtempSync(join(tmpdir(), 'tollgate-history-'));
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function replay(windows: Windows, startMs: number, history: readonly Step[]): Promise<void> {
  const expected = new Map<number, number>();
  const add = (atMs: number, units: number) => {
    const hourMs = Math.floor(atMs / HOUR_MS) * HOUR_MS;
    expected.set(hourMs, (expected.get(hourMs) ?? 0) + units);
  };
  let grants: { id: string; granted: number; left: number; atMs: number; isCounted: boolean }[] = [];
  let nowMs = startMs;
  for (const [index, each] of history.entries()) {
    if (each.kind === 'reserve') {
      nowMs += each.advanceMs;
      const id = `grant-${index}`;
      const { granted } = await windows.reserve(nowMs, each.need, each.holdMs, id);
      add(nowMs, granted);
      if (granted > 0) grants.push({ id, granted, left: granted, atMs: nowMs, isCounted: true });
    } else if (each.kind === 'refund') {
      const lease = grants.at(-1 - each.stepsAgo);
      const units = Math.min(each.units, lease?.left ?? 0);
      // After an hour the store may have forgotten the id.
      if (lease === undefined || units === 0 || nowMs - lease.atMs > HOUR_MS) continue;
      lease.left -= units;
      // Again and again, as a gateway that hears no answer.
      for (let times = 0; times < 2; times++) await windows.refund(nowMs, lease.id, lease.granted - lease.left);
      const isClosed = (Math.floor(lease.atMs / HOUR_MS) + 1) * HOUR_MS + CLOSES_MS <= nowMs;
      const countedAtMs = isClosed ? nowMs : lease.atMs;
      const most = expected.get(Math.floor(countedAtMs / HOUR_MS) * HOUR_MS) ?? 0;
      if (lease.isCounted) add(countedAtMs, -Math.min(units, most));
    } else if (each.kind === 'report') {
      await windows.charge(nowMs, each);
      add(nowMs, each.units);
    } else if (each.kind === 'reset') {
      await windows.reset();
    } else if (each.kind === 'delete') {
      await windows.delete();
      expected.clear();
      grants = grants.map((grant) => ({ ...grant, isCounted: false }));
    } else if (windows.loseWindow) {
      await windows.loseWindow();
      grants = grants.map((grant) => ({ ...grant, isCounted: false }));
    }
  }
  const [fromMs, toMs] = [startMs - DAY_MS, nowMs + HOUR_MS];
  const hours = [...expected].filter(([, units]) => units > 0).toSorted(([a], [b]) => a - b);
  expect((await windows.hours(fromMs, toMs)).map(({ startMs, units }) => [startMs, units])).toEqual(hours);
  const days = new Map<number, number>();
  for (const [hourMs, units] of hours) {
    const dayMs = Math.floor(hourMs / DAY_MS) * DAY_MS;
    days.set(dayMs, (days.get(dayMs) ?? 0) + units);
  }
  expect((await windows.days(fromMs, toMs)).map(({ startMs, units }) => [startMs, units])).toEqual([...days]);
}

function overRedis(): Windows {
  const prefix = `run-${++runs}`;
  const key = `${prefix}:window:{acme}`;
  const scripts = scriptedWindows(redis, HOURLY, RETENTION);
  const nothing = { grant: '', need: 0, ahead: 0, limits: hourly(1e6), holdMs: 0, refunds: [] };
  const history = scriptedHistory(redis, prefix, RETENTION);
  let epochs = 1000;
  return {
    async reserve(nowMs, need, holdMs, id) {
      const [reserved] = await scripts.reserve([key], nowMs, [{ ...nothing, grant: id, need, holdMs }], id);
      if (reserved === undefined || reserved instanceof Error) throw reserved;
      return reserved;
    },
    refund: async (nowMs, grant, units) => {
      const refunds = [{ grant, units, isFinal: false }];
      await scripts.reserve([key], nowMs, [{ ...nothing, refunds }], `epoch-${++epochs}`);
    },
    charge: async (nowMs, admitted) => {
      const report = [{ ...admitted, grant: `report-${++epochs}` }];
      for (let times = 0; times < 2; times++) await scripts.charge(key, nowMs, report, `epoch-${epochs}`);
    },
    reset: () => scripts.reset(key),
    delete: async () => {
      const names = (await redis.command('KEYS', `${prefix}:*`)) as string[];
      if (names.length > 0) await redis.command('DEL', ...names);
    },
    loseWindow: async () => {
      await redis.command('DEL', key);
    },
    hours: async (fromMs, toMs) => (await history.hours(['acme'], { fromMs, toMs }))[0] ?? [],
    days: (fromMs, toMs) => history.days('acme', { fromMs, toMs }),
  };
}

async function overSqlite(clock: HeldClock): Promise<{ windows: Windows; store: Store }> {
  const file = join(folder, `${++runs}.sqlite`);
  const store = await openEmbeddedStore({ file, clock, observer: silent.observer, usage: RETENTION });
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const at = (nowMs: number) => {
    clock.wallMs = nowMs;
  };
  let reports = 0;
  const windows: Windows = {
    reserve(nowMs, need, holdMs, grant) {
      at(nowMs);
      const request = { customer: 'acme', grant, need, ahead: 0, holdMs, refunds: [] };
      return store.windows.reserve({ ...request, limits: hourly(1e6) });
    },
    async refund(nowMs, grant, units) {
      at(nowMs);
      await store.windows.refund('acme', [{ grant, units, isFinal: false }]);
    },
    async charge(nowMs, admitted) {
      at(nowMs);
      const report = [{ ...admitted, grant: `report-${++reports}` }];
      for (let times = 0; times < 2; times++) await store.windows.charge('acme', report);
    },
    reset: async () => {
      await store.records.resetUsage('acme', new Date(clock.wallMs).toISOString());
    },
    delete: async () => {
      await store.records.deleteCustomer('acme');
      await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
    },
    hours: async (fromMs, toMs) => (await store.usageHistory?.hours(['acme'], { fromMs, toMs }))?.[0] ?? [],
    days: async (fromMs, toMs) => (await store.usageHistory?.days('acme', { fromMs, toMs })) ?? [],
  };
  return { windows, store };
}

const startMs = fc.integer({ min: Date.UTC(2096, 0, 1), max: Date.UTC(2105, 0, 1) });
const histories = fc.array(step, { minLength: 5, maxLength: 40 });

test('in Redis, each hour and day has what was granted in it, less refunds, plus reports', async () => {
  await fc.assert(
    fc.asyncProperty(startMs, histories, (start, history) => replay(overRedis(), start, history)),
    { numRuns: RUNS },
  );
});

test('in SQLite, each hour and day has what was granted in it, less refunds, plus reports', async () => {
  await fc.assert(
    fc.asyncProperty(startMs, histories, async (start, history) => {
      const { windows, store } = await overSqlite(new HeldClock());
      await replay(windows, start, history).finally(() => store.close());
    }),
    { numRuns: RUNS },
  );
});

test('a key of another type does not keep the quota from working', async () => {
  const nowMs = Date.UTC(2096, 1, 29, 23, 59);
  const windows = overRedis();
  await redis.command('SET', `run-${runs}:usage:{acme}:20960229`, 'garbage');
  expect(await windows.reserve(nowMs, 3, 2000, 'epoch')).toMatchObject({ granted: 3, counts: [{ used: 3 }] });
  expect(await windows.days(nowMs - DAY_MS, nowMs)).toEqual([
    { startMs: Date.UTC(2096, 1, 29), units: 3, requests: 0 },
  ]);
});

test('a refund after the history was deleted leaves nothing behind', async () => {
  const nowMs = Date.UTC(2096, 0, 1);
  const windows = overRedis();
  await windows.reserve(nowMs, 3, 2000, 'epoch');
  await redis.command('DEL', `run-${runs}:usage:{acme}:20960101`, `run-${runs}:usage-days:{acme}:2096`);
  await windows.refund(nowMs, 'epoch', 3);
  expect(await redis.command('KEYS', `run-${runs}:usage*`)).toEqual([]);
});

describe.each([
  { name: 'Redis', open: async () => ({ windows: overRedis(), close: async () => undefined }) },
  {
    name: 'SQLite',
    open: async () => {
      const { windows, store } = await overSqlite(new HeldClock());
      return { windows, close: () => store.close() };
    },
  },
])('in $name', ({ open }) => {
  const hourMs = Date.UTC(2096, 0, 1, 11);
  const nextMs = hourMs + HOUR_MS;
  const exportMs = nextMs + 60_000;

  async function opened() {
    const { windows, close } = await open();
    onTestFinished(close);
    const units = async () =>
      (await windows.hours(hourMs, nextMs + HOUR_MS)).map(({ startMs, units }) => [startMs, units]);
    return { windows, units };
  }

  test('an exported hour stays what it was when a gateway that was cut off reports, and the sum is right', async () => {
    const { windows, units } = await opened();
    await windows.reserve(nextMs - 1000, 3, 2000, 'epoch');
    expect(await units()).toEqual([[hourMs, 3]]);
    await windows.charge(exportMs, { ageMs: 600_000, units: 60 });
    expect(await units()).toEqual([
      [hourMs, 3],
      [nextMs, 60],
    ]);
  });

  test('an exported hour stays what it was when a gateway that stood still refunds, and the sum is right', async () => {
    const { windows, units } = await opened();
    await windows.reserve(nextMs - 1000, 128, 2000, 'epoch');
    await windows.reserve(exportMs, 20, 2000, 'unused');
    await windows.refund(exportMs, 'epoch', 9);
    expect(await units()).toEqual([
      [hourMs, 128],
      [nextMs, 11],
    ]);
    // At most what the current hour has.
    await windows.refund(exportMs, 'epoch', 21);
    expect(await units()).toEqual([[hourMs, 128]]);
  });

  test('the deleted customer of the same id takes no requests from the history of a new one', async () => {
    const { windows, units } = await opened();
    await windows.reserve(hourMs, 8, 10_000, 'former');
    await windows.reset();
    await windows.delete();
    await windows.reserve(hourMs, 20, 2000, 'new');
    await windows.refund(hourMs, 'former', 3);
    expect(await units()).toEqual([[hourMs, 20]]);
  });

  test('however often usage is reset, refunds of earlier leases are subtracted from the history, not from the quota', async () => {
    const { windows, units } = await opened();
    const grants = ['a', 'b', 'c', 'd'];
    for (const grant of grants) {
      await windows.reserve(hourMs, 10, 2000, grant);
      await windows.reset();
    }
    await windows.reserve(hourMs, 5, 2000, 'e');
    for (const grant of grants) await windows.refund(hourMs, grant, 4);
    expect(await units()).toEqual([[hourMs, 29]]);
    expect(await windows.reserve(hourMs, 0, 0, 'f')).toMatchObject({ counts: [{ used: 5 }] });
  });
});

test('in Redis, refunds of a lost window are not subtracted from what was granted after the loss', async () => {
  const nowMs = Date.UTC(2096, 0, 1);
  const windows = overRedis();
  await windows.reserve(nowMs, 60, 2000, 'lost');
  await redis.command('FLUSHALL');
  await windows.reserve(nowMs, 90, 2000, 'new');
  await windows.refund(nowMs, 'lost', 44);
  expect(await windows.hours(nowMs, nowMs + 1)).toMatchObject([{ requests: 90 }]);
});
