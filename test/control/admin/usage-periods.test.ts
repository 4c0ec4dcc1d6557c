/** Closed periods as billing reads them: page by page, while periods are closed and other programs write. */

import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { uniqueIds } from '../../../src/base/unique-ids.ts';
import type { PeriodReader } from '../../../src/store/period-reader.ts';
import type { Store } from '../../../src/store/store.ts';
import { DAY_MS, HOUR_MS } from '../../../src/store/usage-history.ts';
import { hourly, type PeriodLimit } from '../../../src/store/windows.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { type JsonAnswer, overBothStores, type StartAdmin, startAdmin, type TestAdmin, TOKEN } from './support.ts';

const PATH = '/admin/v1/usage/periods';
const newId = uniqueIds();

/** Reads the store's periods as from this time on. */
async function startAt(start: StartAdmin, nowMs: () => number) {
  const admin = await start();
  const periods: PeriodReader = { ...admin.store.periods, openFromMs: async () => nowMs() };
  const served = await start({ periods, records: admin.records });
  const close = async () => {
    await served.close();
    await admin.close();
  };
  return { admin: served, store: admin.store, close };
}

const inTwoMonths = () => Date.now() + 62 * DAY_MS;

async function use({ windows }: Store, customer: string, need: number, limit: Partial<PeriodLimit> = {}) {
  const period = { policy: 'monthly', amount: 5, beyond: 'allow', anchorMs: 0, plan: 'metered', ...limit } as const;
  const limits = [...hourly(1_000_000), period] as const;
  await windows.reserve({ customer, grant: newId(), need, ahead: 0, limits, holdMs: 1000, refunds: [] });
}

async function linesOf(admin: TestAdmin, query: string): Promise<string[]> {
  const lines: string[] = [];
  for (let path: string | undefined = `${PATH}?${query}`; path !== undefined; ) {
    const got: Response = await fetch(admin.origin + path, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(got.status).toBe(200);
    lines.push(...(await got.text()).split('\n').filter(Boolean));
    path = /^<([^>]+)>; rel="next"$/.exec(got.headers.get('link') ?? '')?.[1];
  }
  return lines;
}

overBothStores((start) => {
  it('a period is listed once it is over for 30 seconds, with what its last grant went by, and never without units', async () => {
    let [nowMs, shift] = [0, 0];
    const { admin, store, close } = await startAt(start, () => nowMs + shift);
    for (const id of ['acme', 'globex']) await store.records.createCustomer({ id, plan: 'metered', suspended: false });
    await use(store, 'acme', 7);
    nowMs = Date.now();
    expect(await admin.list(PATH)).toEqual([]);
    const month = new Date(nowMs);
    const [startMs, endMs] = [0, 1].map((next) => Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + next, 1));
    const isoTime = (ms = 0) => new Date(ms).toISOString().replace('.000Z', 'Z');
    const counted = { plan: 'metered', included: 5, used: 7, overage: 2 };
    const period = { customer: 'acme', starts_at: isoTime(startMs), ends_at: isoTime(endMs), ...counted };
    shift = (endMs ?? 0) - nowMs - 1;
    expect(await admin.list(PATH)).toEqual([]);
    shift += 1;
    expect(await admin.list(PATH)).toEqual([{ id: `acme/${isoTime(startMs)}`, ...period }]);
    const after = async (query: string) => (await admin.list(`${PATH}?${query}`)).length;
    expect(await after(`ended_after=${isoTime(endMs)}`)).toBe(1);
    expect(await after(`ended_after=${isoTime((endMs ?? 0) + 1000)}`)).toBe(0);
    expect(await after(`ended_before=${isoTime(endMs)}`)).toBe(0);
    expect(await after(`ended_before=${isoTime((endMs ?? 0) + 1000)}`)).toBe(1);
    await close();
  });

  it('the lines of all formats, and the pages of any size, are the same periods, which add up to the units counted', async () => {
    const { admin, store, close } = await startAt(start, inTwoMonths);
    let counted = 0;
    const ids = Array.from({ length: 8 }, (_, at) => `customer-${at}`);
    for (const [at, id] of ids.entries()) {
      await store.records.createCustomer({ id, plan: 'metered', suspended: false });
      // From no period to one for each of 24 hours, and a month.
      for (let hour = 0; hour < (at * 7) % 25; hour++) {
        await use(store, id, 1 + hour, { policy: 'daily', anchorMs: hour * HOUR_MS });
        counted += 1 + hour;
      }
      if (at % 3 > 0) await use(store, id, 1000);
      counted += at % 3 > 0 ? 1000 : 0;
    }
    const all = await admin.list(`${PATH}?limit=1000`);
    expect(all.reduce((sum, { used }) => sum + used, 0)).toBe(counted);
    const keyOf = ({ id, ends_at }: JsonAnswer) => `${id} ${ends_at}`;
    const expected = all.map(keyOf).toSorted();
    expect(new Set(expected).size).toBe(expected.length);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), async (limit) => {
        expect((await admin.list(`${PATH}?limit=${limit}`)).map(keyOf).toSorted()).toEqual(expected);
        expect((await admin.call('GET', `${PATH}?limit=${limit}`)).body.items.length).toBeLessThanOrEqual(limit);
        const lines = await linesOf(admin, `format=jsonl&limit=${limit}`);
        expect(lines.map((line) => keyOf(JSON.parse(line))).toSorted()).toEqual(expected);
      }),
      { numRuns: 2, examples: [[1]] },
    );
    const [header, ...rows] = await linesOf(admin, 'format=csv&limit=13');
    expect(header).toBe('id,customer,plan,starts_at,ends_at,included,used,overage');
    expect(rows.map((row) => `${row.split(',')[0]} ${row.split(',')[4]}`).toSorted()).toEqual(expected);
    const stripe = (await linesOf(admin, 'format=stripe')).map((line) => Number(JSON.parse(line).payload.value));
    expect(stripe.reduce((sum, value) => sum + value, 0)).toBe(all.reduce((sum, { overage }) => sum + overage, 0));
    await close();
  });

  it('periods that are closed between two pages are on none of them, and those before are on one', async () => {
    let nowMs = Date.now() + 36 * HOUR_MS;
    const { admin, store, close } = await startAt(start, () => nowMs);
    const ids = Array.from({ length: 12 }, (_, at) => `customer-${at}`);
    for (const id of ids) {
      await store.records.createCustomer({ id, plan: 'metered', suspended: false });
      await use(store, id, 3, { policy: 'daily' });
      await use(store, id, 3);
    }
    // Over both boundaries, whatever day of the month it is.
    const listed: JsonAnswer[] = [];
    for (let cursor: string | null = ''; cursor !== null; nowMs = inTwoMonths()) {
      const from: string = cursor && `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await admin.call('GET', `${PATH}?limit=1${from}`);
      listed.push(...body.items);
      cursor = body.next_cursor;
    }
    const isDay = ({ starts_at, ends_at }: JsonAnswer) => Date.parse(ends_at) - Date.parse(starts_at) === DAY_MS;
    expect(
      listed
        .filter(isDay)
        .map(({ customer }) => customer)
        .toSorted(),
    ).toEqual(ids.toSorted());
    const months = listed.filter((period) => !isDay(period));
    // The month may have ended within the 36 hours: then it was closed before the first page.
    expect([0, ids.length]).toContain(months.length);
    await close();
  });

  it('what is no time, format, cursor or parameter gets 422, and HEAD the headers of GET', async () => {
    const nowMs = inTwoMonths();
    const { admin, store, close } = await startAt(start, () => nowMs);
    for (const id of ['acme', 'globex']) {
      await store.records.createCustomer({ id, plan: 'metered', suspended: false });
      await use(store, id, 1);
    }
    const queries = ['ended_after=yesterday', 'ended_before=2026-01-01', 'format=xml', 'cursor=x', 'limit=0', 'from=1'];
    for (const query of [...queries, 'cursor=~~', 'cursor=1~acme~1~', 'cursor=1~~nonsense!']) {
      const { status, body } = await admin.call('GET', `${PATH}?${query}`);
      expect([query, status, body.code]).toEqual([query, 422, 'unprocessable']);
    }
    const headers = { authorization: `Bearer ${TOKEN}` };
    const ask = (method: string) => fetch(`${admin.origin}${PATH}?format=csv&limit=1`, { method, headers });
    const [head, got] = [await ask('HEAD'), await ask('GET')];
    expect(got.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect((await got.text()).split('\n')).toHaveLength(3);
    for (const name of ['content-type', 'link']) expect(head.headers.get(name)).toBe(got.headers.get(name));
    await close();
  });
});

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

it('what another program wrote beside periods is left out and logged, and breaks no page', async () => {
  const admin = await startAdmin({}, { url: redis.url, keyPrefix: 'damaged' });
  const client = new Redis(redis.url);
  const nameOf = (id: string) => `damaged:period:{${id}}`;
  for (const id of ['acme', 'globex', 'initech']) {
    await admin.records.createCustomer({ id, plan: 'metered', suspended: false });
  }
  const startHour = Math.floor(Date.now() / HOUR_MS) - 800;
  const good = { [`${startHour}`]: '9', [`${startHour}:at`]: `${startHour + 700} 4 allow metered` };
  await client.hset(nameOf('acme'), { ...good, [`${startHour + 1}`]: 'secret-text', note: 'secret-text', 'x:at': '' });
  await client.set(nameOf('globex'), 'secret-text');
  await client.hset(nameOf('initech'), good);
  const listed = await admin.list(PATH);
  expect(listed.map(({ customer, overage }) => [customer, overage]).toSorted()).toEqual([
    ['acme', 5],
    ['initech', 5],
  ]);
  const logged = admin.logs.join('');
  expect(logged).toContain('acme');
  expect(logged).toContain('globex');
  expect(logged).not.toContain('secret-text');
  client.disconnect();
  await admin.close();
});
