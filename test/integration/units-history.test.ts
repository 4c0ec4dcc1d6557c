/** The usage history of requests that take several units, or none: what the store has once the gateway has closed. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { verify } from '../check/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { STORES, type StoreKind, startTestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';

const HEAVY = [
  { path: '/one', methods: ['GET'] },
  { path: '/five', methods: ['GET'], units: 5 },
  { path: '/free', methods: ['GET'], units: 0 },
  { path: '/open', methods: ['GET'], key: 'none' },
];
const LIGHT = [{ path: '/one', methods: ['GET'] }];

async function startOn(storeUrl: string, routes: readonly object[]) {
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const config = {
    routes,
    aliases: {},
    usage_path: '/usage',
    check: { host: '127.0.0.1', port: 0, token: 'check-token-of-the-tests' },
  };
  const gateway = await startTestGateway({ storeUrl, upstreamUrl: backend.url, config: config as never });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function openStore(store: StoreKind): Promise<string> {
  const { url, close } = await store.start();
  onTestFinished(close);
  return url;
}

interface Point {
  readonly requests: number;
  readonly units: number;
}

function sum(points: readonly Point[]) {
  const total = (of: keyof Point) => points.reduce((all, point) => all + point[of], 0);
  return { requests: total('requests'), units: total('units') };
}

describe.each(STORES)('with $name', (store) => {
  it('units are exact, and requests are those that were sent or admitted, of 0 units too', async () => {
    const url = await openStore(store);
    const gateway = await startOn(url, HEAVY);
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 14 });
    const send = async (path: string) => (await fetch(gateway.public + path, { headers: bearer(key) })).status;
    const paths = ['/five', '/one', '/free', '/five', '/five', '/one', '/open', '/usage'];
    expect(await Promise.all(paths.slice(0, 3).map(send))).toEqual([200, 200, 200]);
    for (const [at, status] of [200, 429, 200, 200, 200].entries())
      expect(await send(paths[3 + at] ?? '')).toBe(status);
    expect((await verify(gateway, { key, path: '/one' })).body.allowed).toBe(true);
    await gateway.close();

    const { admin, public: origin } = await startOn(url, HEAVY);
    const expected = { requests: 6, units: 13 };
    for (const step of ['hour', 'day']) {
      const { body } = await callAdmin({ admin }, `/admin/v1/customers/acme/usage/history?step=${step}`);
      expect(sum(body.points)).toEqual(expected);
    }
    const own = await (await fetch(`${origin}/usage/history`, { headers: bearer(key) })).json();
    const { hours, days } = own as Record<'hours' | 'days', Point[]>;
    expect([sum(hours), sum(days)]).toEqual([expected, expected]);
  });

  it('while every route takes one unit, requests are not counted and equal the units', async () => {
    const url = await openStore(store);
    const gateway = await startOn(url, LIGHT);
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    for (let i = 0; i < 3; i++) await fetch(`${gateway.public}/one`, { headers: bearer(key) });
    await gateway.close();
    const { body } = await callAdmin(await startOn(url, LIGHT), '/admin/v1/customers/acme/usage/history');
    expect(sum(body.points)).toEqual({ requests: 3, units: 3 });
  });
});

it('in Redis, `hh` are units and `hh:n` requests, and the same of days', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const gateway = await startOn(redis.url, HEAVY);
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  for (const path of ['/five', '/five', '/free']) await fetch(gateway.public + path, { headers: bearer(key) });
  await gateway.close();
  for (const [pattern, field] of [
    ['tollgate:usage:{acme}:*', /^\d\d(:n)?$/],
    ['tollgate:usage-days:{acme}:*', /^\d{4}(:n)?$/],
  ] as const) {
    const counts = { units: 0, requests: 0 };
    for (const name of (await redis.command('KEYS', pattern)) as string[]) {
      expect(await redis.command('TTL', name)).toBeGreaterThan(0);
      const fields = (await redis.command('HGETALL', name)) as string[];
      for (let at = 0; at < fields.length; at += 2) {
        expect(fields[at]).toMatch(field);
        counts[fields[at]?.endsWith(':n') ? 'requests' : 'units'] += Number(fields[at + 1]);
      }
    }
    expect(counts).toEqual({ units: 10, requests: 3 });
  }
});
