/** Notices of keys that expire soon: once over all gateways, whoever wrote the keys, and at an even and small load. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock, systemScheduler } from '../../../src/base/clock.ts';
import { ExpiringKeys } from '../../../src/customers/notices/expiring-keys.ts';
import type { NoticeContent } from '../../../src/customers/notices/notice.ts';
import { embeddedNotices } from '../../../src/store/embedded/notices.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import type { KeyRecord } from '../../../src/store/record-fields.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';
import { openWithPrefix } from '../../store/open-with-prefix.ts';
import { openEmbeddedContext } from '../../support/embedded-context.ts';
import { startRedis } from '../../support/redis-server.ts';
import { keyName } from '../../support/redis-system.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.parse('2030-01-01T00:00:00Z');
const inDays = (days: number) => new Date(START_MS + days * DAY_MS).toISOString();
const keyOf = (members: Partial<KeyRecord>): KeyRecord => ({ id: 'key_1', customer: 'acme', ...members });

/** Gateways that search these keys, in virtual time. */
function openGateways(keys: readonly KeyRecord[], { gateways = 3 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-expiring-'));
  const time = new VirtualTime();
  const clock = { nowMs: () => START_MS + time.nowMs };
  const context = openEmbeddedContext(join(folder, 'notices.db'), clock.nowMs);
  const notices = embeddedNotices(context);
  const world = {
    keys,
    days: [1, 7] as readonly number[] | undefined,
    isUp: true,
    fault: undefined as Error | undefined,
    pages: [] as number[],
    created: 0,
  };
  const failures: unknown[] = [];
  const searches = Array.from({ length: gateways }, () => {
    const search = new ExpiringKeys({
      records: {
        async listKeys(cursor, limit) {
          if (world.fault) throw world.fault;
          world.pages.push(time.nowMs);
          const from = Number(cursor ?? 0);
          const next = from + limit < world.keys.length ? String(from + limit) : undefined;
          return { items: world.keys.slice(from, from + limit), next };
        },
      },
      notices,
      storeIsUp: () => world.isUp,
      days: () => world.days,
      created: () => {
        world.created += 1;
      },
      onFailure: (error) => failures.push(error),
      clock,
      scheduler: { after: (ms, action) => time.in(ms, action) },
      random: () => 0.5,
    });
    search.start();
    return search;
  });
  onTestFinished(async () => {
    for (const search of searches) await search.close();
    context.database.close();
    rmSync(folder, { recursive: true });
  });
  return {
    world,
    failures,
    searches,
    run: (hours: number) => time.run(hours * HOUR_MS),
    async made() {
      const { items } = await notices.list('pending', 0, 10_000);
      return items.map(({ customer, content }) => {
        const { type, timestamp, data } = JSON.parse(content) as NoticeContent;
        return { customer, type, timestamp: Date.parse(timestamp) - START_MS, data };
      });
    },
  };
}

describe('the notice of an expiring key', () => {
  test('comes a week and a day before, each once over three gateways, within an hour', async () => {
    const gateways = openGateways([keyOf({ expiresAt: inDays(10) })]);
    await gateways.run(12 * 24);
    const made = await gateways.made();
    const data = { customer: 'acme', plan: null, key_id: 'key_1', expires_at: '2030-01-11T00:00:00.000Z' };
    expect(made).toEqual([
      { customer: 'acme', type: 'key.expiring', timestamp: expect.any(Number), data },
      { customer: 'acme', type: 'key.expiring', timestamp: expect.any(Number), data },
    ]);
    expect(gateways.world.created).toBe(2);
    for (const [at, days] of [3, 9].entries()) {
      const lateMs = (made[at]?.timestamp ?? 0) - days * DAY_MS;
      expect(lateMs >= 0 && lateMs <= 1.1 * HOUR_MS).toBe(true);
    }
  });

  test('is the nearest one alone if the key is found late', async () => {
    const gateways = openGateways([keyOf({ expiresAt: inDays(0.9) })]);
    await gateways.run(48);
    expect(await gateways.made()).toHaveLength(1);
  });

  test('comes again when the expiry changes', async () => {
    const gateways = openGateways([keyOf({ expiresAt: inDays(6) })]);
    await gateways.run(2);
    gateways.world.keys = [keyOf({ expiresAt: inDays(5) })];
    await gateways.run(2);
    expect((await gateways.made()).map(({ data }) => data.expires_at)).toEqual([inDays(6), inDays(5)]);
  });

  test.each<[string, Partial<KeyRecord>]>([
    ['does not expire', {}],
    ['expires later', { expiresAt: inDays(30) }],
    ['has expired', { expiresAt: inDays(-1) }],
    ['is revoked', { expiresAt: inDays(3), revokedAt: inDays(-1) }],
    ['has an unreadable expiry', { expiresAt: 'soon' }],
    ['lives for a week only', { expiresAt: inDays(6), createdAt: inDays(-1) }],
    ['has an id with a space', { expiresAt: inDays(3), id: 'a b' }],
    ['has a customer with a space', { expiresAt: inDays(3), customer: 'a b' }],
  ])('does not come for a key that %s', async (_what, members) => {
    const gateways = openGateways([keyOf(members)]);
    await gateways.run(3);
    expect(await gateways.made()).toEqual([]);
    expect(gateways.failures).toEqual([]);
  });

  test('comes for a key of another program, without a creation time', async () => {
    const gateways = openGateways([keyOf({ expiresAt: inDays(6), id: 'legacy/1' })]);
    await gateways.run(2);
    expect(await gateways.made()).toHaveLength(1);
  });

  test('does not come while none is configured, and does after a reload', async () => {
    const gateways = openGateways([keyOf({ expiresAt: inDays(6) })]);
    gateways.world.days = undefined;
    await gateways.run(5);
    expect([gateways.world.pages, await gateways.made()]).toEqual([[], []]);
    gateways.world.days = [7];
    await gateways.run(2);
    expect(await gateways.made()).toHaveLength(1);
  });

  test('comes after an outage of the store', async () => {
    const gateways = openGateways([keyOf({ expiresAt: inDays(6) })], { gateways: 1 });
    gateways.world.fault = new StoreUnavailableError('connection lost');
    await gateways.run(1);
    gateways.world.fault = undefined;
    gateways.world.isUp = false;
    await gateways.run(2);
    expect([await gateways.made(), gateways.failures]).toEqual([[], [expect.any(StoreUnavailableError)]]);
    gateways.world.isUp = true;
    await gateways.run(2);
    expect(await gateways.made()).toHaveLength(1);
  });
});

describe('the search', () => {
  test('reads at most a page of 500 keys a second, and begins again after an hour', async () => {
    const keys = Array.from({ length: 100_000 }, (_, n) => keyOf({ id: `k${n}` }));
    const { world, run } = openGateways(keys, { gateways: 1 });
    await run(1);
    expect(world.pages).toHaveLength(200);
    expect(new Set(world.pages.map((ms, at) => ms - (world.pages[at - 1] ?? ms - 1000)))).toEqual(new Set([1000]));
    await run(1);
    expect(world.pages).toHaveLength(400);
  });

  test('makes at most a hundred notices for a customer, and the others in the next searches', async () => {
    const keys = Array.from({ length: 250 }, (_, n) => keyOf({ id: `k${n}`, expiresAt: inDays(6) }));
    const gateways = openGateways([...keys, keyOf({ customer: 'globex', expiresAt: inDays(6) })], { gateways: 1 });
    const counts: number[] = [];
    for (let hour = 0; hour < 4; hour++) {
      await gateways.run(1);
      counts.push((await gateways.made()).length);
    }
    expect(counts).toEqual([101, 201, 251, 251]);
  });

  test('ends when the gateway stops', async () => {
    const { world, searches, run } = openGateways([keyOf({})], { gateways: 1 });
    await run(3);
    const pages = world.pages.length;
    await searches[0]?.close();
    await run(3);
    expect(world.pages).toHaveLength(pages);
  });
});

test('over Redis, keys that a dashboard wrote have one notice each, of two gateways that search at once', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const expires_at = new Date(Date.now() + 6 * DAY_MS).toISOString();
  const prefix = 'tollgate';
  const stores = await Promise.all([openWithPrefix(redis, prefix), openWithPrefix(redis, prefix)]);
  for (const id of ['key_1', 'key_2']) {
    const fields = Object.entries({ id, customer: 'acme', expires_at }).flat();
    await redis.command('HSET', keyName(id), ...fields);
  }
  const made: string[] = [];
  const steps = stores.map(({ store }) => {
    const counted = { count: 0 };
    const search = new ExpiringKeys({
      records: store.records,
      notices: store.notices,
      storeIsUp: () => store.isUp(),
      days: () => [7],
      created: () => made.push('created'),
      onFailure: (error) => made.push(String(error)),
      clock: systemClock,
      scheduler: {
        after(ms, action) {
          counted.count += 1;
          return systemScheduler.after(ms / 100_000, action);
        },
      },
      random: () => 0,
    });
    search.start();
    onTestFinished(() => search.close());
    return counted;
  });
  await expect.poll(() => steps.every(({ count }) => count > 5)).toBe(true);
  expect(made).toEqual(['created', 'created']);
  const { items } = (await stores[0]?.store.notices.list('pending', 0, 10)) ?? { items: [] };
  const keys = items.map(({ content }) => JSON.parse(content).data.key_id);
  expect(new Set(keys)).toEqual(new Set(['key_1', 'key_2']));
});
