/** Requests in the usage history: units are counted in the hour of their grant, by the calls that change the quota. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/embedded-store.ts';
import type { AdmittedUnits, Grant, Refund, Store } from '../../src/store/store.ts';
import { type CustomerHour, DAY_MS, HOUR_MS, type UsageRetention } from '../../src/store/usage-history.ts';
import { HOURLY } from '../../src/store/window-arithmetic.ts';
import { HeldClock } from '../keys/held-clock.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { scriptedHistory, scriptedWindows } from './window-scripts-with-clock.ts';

/** Long enough that Redis, whose own clock decides on expiry, deletes nothing of these years. */
const RETENTION: UsageRetention = { hoursDays: 1_000_000, days: 1_000_000 };
const RUNS = 60;

type Step =
  | { readonly kind: 'reserve'; readonly advanceMs: number; readonly need: number; readonly holdMs: number }
  | { readonly kind: 'refund'; readonly stepsAgo: number; readonly units: number }
  | { readonly kind: 'report'; readonly ageMs: number; readonly units: number }
  | { readonly kind: 'reset' };

interface Windows {
  reserve(nowMs: number, need: number, holdMs: number, epoch: string): Promise<Grant>;
  refund(nowMs: number, refund: Refund): Promise<void>;
  report(nowMs: number, admitted: AdmittedUnits): Promise<void>;
  reset(): Promise<void>;
  hours(fromMs: number, toMs: number): Promise<readonly CustomerHour[]>;
  days(fromMs: number, toMs: number): Promise<readonly { startMs: number; requests: number }[]>;
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
  { weight: 1, arbitrary: fc.constant({ kind: 'reset' as const }) },
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
  const grants: { grant: Grant; left: number; atMs: number }[] = [];
  let nowMs = startMs;
  for (const [index, each] of history.entries()) {
    if (each.kind === 'reserve') {
      nowMs += each.advanceMs;
      const grant = await windows.reserve(nowMs, each.need, each.holdMs, `epoch-${index}`);
      add(nowMs, grant.granted);
      if (grant.granted > 0) grants.push({ grant, left: grant.granted, atMs: nowMs });
    } else if (each.kind === 'refund') {
      const lease = grants.at(-1 - each.stepsAgo);
      const units = Math.min(each.units, lease?.left ?? 0);
      if (lease === undefined || units === 0) continue;
      lease.left -= units;
      const { epoch, bucket, session } = lease.grant;
      await windows.refund(nowMs, { epoch, bucket, session, units, hour: Math.floor(lease.atMs / HOUR_MS) });
      add(lease.atMs, -units);
    } else if (each.kind === 'report') {
      await windows.report(nowMs, each);
      add(nowMs - each.ageMs - HOURLY.bucketMs, each.units);
    } else {
      await windows.reset();
    }
  }
  const [fromMs, toMs] = [startMs - DAY_MS, nowMs + HOUR_MS];
  const hours = [...expected].filter(([, units]) => units > 0).toSorted(([a], [b]) => a - b);
  expect((await windows.hours(fromMs, toMs)).map(({ startMs, requests }) => [startMs, requests])).toEqual(hours);
  const days = new Map<number, number>();
  for (const [hourMs, units] of hours) {
    const dayMs = Math.floor(hourMs / DAY_MS) * DAY_MS;
    days.set(dayMs, (days.get(dayMs) ?? 0) + units);
  }
  expect((await windows.days(fromMs, toMs)).map(({ startMs, requests }) => [startMs, requests])).toEqual([...days]);
}

function overRedis(): Windows {
  const prefix = `run-${++runs}`;
  const key = `${prefix}:window:{acme}`;
  const scripts = scriptedWindows(redis, HOURLY, RETENTION);
  const nothing = { need: 0, ahead: 0, limit: 1e6, holdMs: 0, refunds: [] };
  const history = scriptedHistory(redis, prefix, RETENTION);
  return {
    async reserve(nowMs, need, holdMs, epoch) {
      const [reserved] = await scripts.reserve([key], nowMs, [{ ...nothing, need, holdMs }], epoch);
      if (reserved === undefined || reserved instanceof Error) throw reserved;
      return { ...reserved, session: 1 };
    },
    refund: async (nowMs, refund) => {
      await scripts.reserve([key], nowMs, [{ ...nothing, refunds: [refund] }], 'epoch-of-a-refund');
    },
    report: async (nowMs, admitted) => {
      await scripts.report(key, nowMs, [admitted], 'epoch-of-a-report');
    },
    reset: async () => {
      await redis.command('DEL', key);
    },
    hours: async (fromMs, toMs) => (await history.hours(['acme'], { fromMs, toMs }))[0] ?? [],
    days: (fromMs, toMs) => history.days('acme', { fromMs, toMs }),
  };
}

async function overSqlite(clock: HeldClock): Promise<{ windows: Windows; store: Store }> {
  const file = join(folder, `${++runs}.sqlite`);
  const observer = { called: () => undefined, up: () => undefined };
  const store = await openEmbeddedStore({ file, clock, observer, usage: RETENTION });
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const at = (nowMs: number) => {
    clock.wallMs = nowMs;
  };
  const windows: Windows = {
    reserve(nowMs, need, holdMs) {
      at(nowMs);
      return store.windows.reserve({ customer: 'acme', need, ahead: 0, limit: 1e6, holdMs, refunds: [] });
    },
    async refund(nowMs, refund) {
      at(nowMs);
      await store.windows.refund('acme', [refund]);
    },
    async report(nowMs, admitted) {
      at(nowMs);
      await store.windows.report('acme', [admitted]);
    },
    reset: async () => {
      await store.records.resetUsage('acme', new Date(clock.wallMs).toISOString());
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
  expect(await windows.reserve(nowMs, 3, 2000, 'epoch')).toMatchObject({ granted: 3, used: 3 });
  expect(await windows.days(nowMs - DAY_MS, nowMs)).toEqual([{ startMs: Date.UTC(2096, 1, 29), requests: 3 }]);
});

test('a refund after the history was deleted leaves nothing behind', async () => {
  const nowMs = Date.UTC(2096, 0, 1);
  const windows = overRedis();
  const { epoch, bucket, session } = await windows.reserve(nowMs, 3, 2000, 'epoch');
  await redis.command('DEL', `run-${runs}:usage:{acme}:20960101`, `run-${runs}:usage-days:{acme}:2096`);
  await windows.refund(nowMs, { epoch, bucket, session, units: 3, hour: nowMs / HOUR_MS });
  expect(await redis.command('KEYS', `run-${runs}:usage*`)).toEqual([]);
});
