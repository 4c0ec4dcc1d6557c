/**
 * After FLUSHALL, or a Redis that restarted without its data, good keys were called invalid (401) by every gateway that
 * started then, by a replaced worker, and, on a prefix that a dashboard had filled before the first gateway started, by
 * all gateways at once: such a prefix never got the mark by which a loss is noticed. Callers throw such keys away.
 */
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { INSTALLED_NAME, writeCustomer, writeKey } from '../support/redis-system.ts';

const UNKNOWN = 'a-key-of-nobody';

async function start() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const startGateway = async () => {
    const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  return { redis, startGateway };
}

/** As a dashboard does. */
async function fill(redis: RedisServer): Promise<void> {
  await writeCustomer(redis, 'acme', { plan: 'starter' });
  for (const key of ['first-key', 'second-key']) await writeKey(redis, key, 'acme');
}

async function ask({ public: url }: TestGateway, key: string): Promise<string> {
  const response = await fetch(`${url}/v1/conversations`, { headers: bearer(key) });
  const { code } = (await response.json()) as { code?: string };
  return [response.status, ...(code ? [code] : [])].join(' ');
}

async function readiness({ ops }: TestGateway): Promise<string> {
  const response = await fetch(`${ops}/readyz`);
  const { status, reasons } = (await response.json()) as { status: string; reasons?: string[] };
  return [response.status, status, ...(reasons ?? [])].join(' ');
}

async function lose(redis: RedisServer, how: string): Promise<void> {
  if (how === 'FLUSHALL') await redis.command('FLUSHALL');
  else await redis.restart();
}

const DOUBTED = '503 store_unavailable';
const INVALID = '401 invalid_key';

test.each(['FLUSHALL', 'a restart without data'])(
  'a prefix with records of a dashboard gets its mark at the first start, and no key gets 401 after %s',
  async (how) => {
    const { redis, startGateway } = await start();
    await fill(redis);
    const old = await startGateway();
    expect(await readiness(old)).toBe('200 ready');
    const id = String(await redis.command('GET', INSTALLED_NAME));
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect([await ask(old, 'first-key'), await ask(old, UNKNOWN)]).toEqual(['200', INVALID]);

    await lose(redis, how);
    await expect.poll(() => readiness(old)).toBe('200 degraded store_wiped');
    expect([await ask(old, 'first-key'), await ask(old, 'second-key')]).toEqual(['200', DOUBTED]);
    await expect.poll(() => redis.command('GET', INSTALLED_NAME)).toBe(`lost-${id}`);

    const late = await startGateway();
    expect(await readiness(late)).toBe('200 degraded store_wiped');
    expect([await ask(late, 'first-key'), await ask(late, UNKNOWN)]).toEqual([DOUBTED, DOUBTED]);
    // Half restored: what is there is served, what is missing proves nothing.
    await writeCustomer(redis, 'acme', { plan: 'starter' });
    await writeKey(redis, 'first-key', 'acme');
    expect([await ask(late, 'first-key'), await ask(late, 'second-key')]).toEqual(['200', DOUBTED]);

    await fill(redis);
    await redis.command('SET', INSTALLED_NAME, id);
    for (const gateway of [old, late]) {
      await expect.poll(() => readiness(gateway)).toBe('200 ready');
      expect([await ask(gateway, 'second-key'), await ask(gateway, UNKNOWN)]).toEqual(['200', INVALID]);
    }
  },
);

test('a single gateway that restarts after a loss does not trust the empty store until its first record', async () => {
  const { redis, startGateway } = await start();
  await fill(redis);
  const old = await startGateway();
  const id = String(await redis.command('GET', INSTALLED_NAME));
  await old.close();
  await redis.command('FLUSHALL');

  const gateway = await startGateway();
  expect(await readiness(gateway)).toBe('200 degraded store_empty');
  expect(await ask(gateway, 'first-key')).toBe(DOUBTED);
  expect((await callAdmin(gateway, '/status')).body.store).toMatchObject({ empty: true, wiped: false });

  await fill(redis);
  await expect.poll(() => readiness(gateway)).toBe('200 ready');
  expect([await ask(gateway, 'second-key'), await ask(gateway, UNKNOWN)]).toEqual(['200', INVALID]);
  // What filled it was a restore, whose own id comes last.
  await redis.command('SET', INSTALLED_NAME, id);
  expect(await ask(gateway, 'another-key-of-nobody')).toBe(INVALID);
  expect(await readiness(gateway)).toBe('200 ready');
});

test('a new installation is called new, can create its first customer, and trusts its store from then on', async () => {
  const { startGateway } = await start();
  const gateways = [await startGateway(), await startGateway()];
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('there are two');
  expect(await ask(gateway, UNKNOWN)).toBe(DOUBTED);
  expect((await callAdmin(gateway, '/admin/v1/customers')).body).toMatchObject({ items: [] });
  expect((await callAdmin(gateway, '/admin/v1/customers/nobody')).status).toBe(404);
  // An operator who tries the first commands is told that the store is new, not that it lost data.
  const problems = (await callAdmin(gateway, '/status')).body.problems;
  expect(problems).toMatchObject([{ what: 'The store has no customers yet.' }]);
  const found = await callAdmin(gateway, `/admin/v1/keys?sha256=${'a'.repeat(64)}`);
  expect(found.body.detail).toContain('has no customers yet: create the first customer and key');
  const created = await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'acme', plan: 'starter' } });
  expect(created.status).toBe(201);
  expect(await ask(gateway, UNKNOWN)).toBe(INVALID);
  for (const each of gateways) await expect.poll(() => readiness(each)).toBe('200 ready');
});

test('"store init" says that a store is meant to be empty, to gateways that start later too', async () => {
  const { redis, startGateway } = await start();
  const gateway = await startGateway();
  await redis.command('SET', INSTALLED_NAME, 'init-some-id');
  await expect.poll(() => readiness(gateway)).toBe('200 ready');
  for (const each of [gateway, await startGateway()]) expect(await ask(each, UNKNOWN)).toBe(INVALID);
});
