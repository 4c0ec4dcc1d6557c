/**
 * A read of the usage history cost whatever a read token asked for: an export from 1970 read 20,000 days of every
 * customer, and a chart of 1,000 days read as many hashes of hours. One damaged record among the customers near their
 * limits was 503 for the whole list.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, type UsageHistory } from '../../src/store/usage-history.ts';
import { hourly } from '../../src/store/windows.ts';
import { startAdmin, TOKEN } from '../control/admin/support.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const HOURS_DAYS = 35;
const CUSTOMERS = ['acme', 'globex', 'initech'];
const NONE = { counts: [], totals: [], near: [] };

let redis: RedisServer;
let started = 0;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function start() {
  const prefix = `test-${++started}`;
  const admin = await startAdmin({}, { url: redis.url, keyPrefix: prefix });
  for (const id of CUSTOMERS) await admin.records.createCustomer({ id, plan: 'starter', suspended: false });
  const history = admin.store.usageHistory as UsageHistory;
  const hourMs = Math.floor((await history.nowMs()) / HOUR_MS) * HOUR_MS;
  return { prefix, admin, history, hourMs };
}

async function hashesReadBy<T>(work: () => Promise<T>): Promise<{ result: T; hashes: number }> {
  await redis.command('CONFIG', 'RESETSTAT');
  const result = await work();
  const statistics = String(await redis.command('INFO', 'commandstats'));
  return { result, hashes: Number(/cmdstat_hgetall:calls=(\d+)/.exec(statistics)?.[1] ?? 0) };
}

test('an export from 1970 reads only the days that are kept, and loses none of them', async () => {
  const { admin, history, hourMs } = await start();
  const oldestMs = Math.floor(hourMs / DAY_MS) * DAY_MS - HOURS_DAYS * DAY_MS;
  const refusals = CUSTOMERS.map((customer) => ({ customer, hourMs: oldestMs, code: 'suspended', count: 1 }));
  await history.add({ ...NONE, counts: refusals });
  const { result, hashes } = await hashesReadBy(async () => {
    const query = 'from=1970-01-01T00:00:00Z&to=9999-01-01T00:00:00Z&format=csv';
    const response = await fetch(`${admin.origin}/admin/v1/usage/export?${query}`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    return response.text();
  });
  expect(result.trimEnd().split('\n').slice(1)).toHaveLength(CUSTOMERS.length);
  expect(hashes).toBeLessThanOrEqual(CUSTOMERS.length * (HOURS_DAYS + 2));
  await admin.close();
});

test('a chart of 1,000 days, also of days to come, reads only the days that are kept', async () => {
  const { prefix, admin, hourMs } = await start();
  const dayMs = Math.floor(hourMs / DAY_MS) * DAY_MS;
  const [isoDay, day] = [new Date(dayMs).toISOString().slice(0, 10), new Date(dayMs).toISOString().slice(5, 10)];
  await redis.command('HSET', `${prefix}:usage-days:{acme}:${isoDay.slice(0, 4)}`, day.replace('-', ''), 7);
  for (const fromMs of [dayMs - 999 * DAY_MS, dayMs - 30 * DAY_MS]) {
    const [from, to] = [fromMs, fromMs + 1000 * DAY_MS].map((ms) => new Date(ms).toISOString());
    for (const path of ['usage/history', 'customers/acme/usage/history']) {
      const { result, hashes } = await hashesReadBy(() =>
        admin.call('GET', `/admin/v1/${path}?step=day&from=${from}&to=${to}`),
      );
      expect(result.body.points).toHaveLength(1000);
      expect(hashes).toBeLessThanOrEqual(HOURS_DAYS + 2 + 4);
      if (path !== 'usage/history') {
        expect(result.body.points).toContainEqual({
          start: `${isoDay}T00:00:00Z`,
          requests: 7,
          units: 7,
          refused: 0,
          open: true,
        });
      }
    }
  }
  await admin.close();
});

test('a damaged record does not hide the other customers near their limits', async () => {
  const { prefix, admin, history } = await start();
  for (const customer of CUSTOMERS) {
    await admin.store.windows.reserve({
      customer,
      grant: 'a',
      need: 900,
      ahead: 0,
      limits: hourly(1000),
      holdMs: 1000,
      refunds: [],
    });
  }
  await history.add({ ...NONE, near: CUSTOMERS.map((customer) => ({ customer, percent: 90 })) });
  await redis.command('SET', `${prefix}:customer:{globex}`, 'garbage');
  const { status, body } = await admin.call('GET', '/admin/v1/usage/near');
  expect(status).toBe(200);
  expect(body.map(({ customer }: { customer: string }) => customer).toSorted()).toEqual(['acme', 'initech']);
  await admin.close();
});
