/** What customers, keys and windows take in Redis, by Redis's own account: the numbers of docs/capacity.md. */
import { expect, onTestFinished, test } from 'vitest';
import { createApiKey, sha256Hex } from '../../src/formats/api-key.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { hourly } from '../../src/store/windows.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { windowName } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';

const BUCKETS = 361;
const AT = '2026-11-21T12:00:00.000Z';

async function start() {
  // The name before Redis 7, which later ones know as well.
  const redis = await startRedis({ args: ['--hash-max-ziplist-entries', '400'] });
  onTestFinished(() => redis.stop());
  const store = await openRedisStore({
    url: redis.url,
    keyPrefix: 'tollgate',
    timeoutMs: 5000,
    ...silent,
  });
  onTestFinished(() => store.close());
  return { redis, store };
}

async function bytesOf(redis: RedisServer, name: string): Promise<number> {
  return Number(await redis.command('MEMORY', 'USAGE', name, 'SAMPLES', 0));
}

test('a customer that comes now and then takes at most 200 bytes for its window', async () => {
  const { redis, store } = await start();
  const reservation = { need: 1, ahead: 0, limits: hourly(1000), holdMs: 2000, refunds: [] };
  await store.windows.reserve({ customer: 'acme', grant: 'a', ...reservation });
  expect(await bytesOf(redis, windowName('acme'))).toBeLessThanOrEqual(200);
});

test('a customer that is active all the time takes at most 4 KB for its window', async () => {
  const { redis } = await start();
  const oldest = 178_000_000;
  const fields = Array.from({ length: BUCKETS }, (_, i) => [oldest + i, 55]).flat();
  await redis.command(
    'HSET',
    windowName('acme'),
    'head',
    `0123456789abcdef 19855 ${oldest} ${oldest + 360} 0`,
    ...fields,
  );
  expect(await redis.command('OBJECT', 'ENCODING', windowName('acme'))).toMatch(/^(listpack|ziplist)$/);
  expect(await bytesOf(redis, windowName('acme'))).toBeLessThanOrEqual(4096);
});

test('a customer that comes now and then takes at most 200 bytes for its grants, 200 for its months, 3 KB for its days', async () => {
  const { redis, store } = await start();
  const limit = { amount: 50_000, beyond: 'refuse', anchorMs: 0, plan: 'professional' } as const;
  const KEPT = { monthly: { periods: 2, bytes: 200 }, daily: { periods: 41, bytes: 3072 } } as const;
  for (const policy of ['monthly', 'daily'] as const) {
    const { periods, bytes } = KEPT[policy];
    const reservation = { need: 12, ahead: 0, limits: [...hourly(100), { policy, ...limit }] as const, holdMs: 2000 };
    await store.windows.reserve({ customer: policy, grant: 'AbCdEfGh.1', refunds: [], ...reservation });
    expect(await bytesOf(redis, `tollgate:grants:{${policy}}`)).toBeLessThanOrEqual(200);
    const name = `tollgate:period:{${policy}}`;
    const fields = (await redis.command('HGETALL', name)) as string[];
    // Those of the periods before it, of the same length.
    for (let index = 1; index < periods; index++) {
      const older = fields.map((text) => text.replace(/^(d?\d)\d\d(\d\d\d)/, `$1${10 + index}$2`));
      await redis.command('HSET', name, ...older);
    }
    expect(await redis.command('HLEN', name)).toBe(2 * periods);
    expect(await bytesOf(redis, name)).toBeLessThanOrEqual(bytes);
  }
});

test('a customer with its record and one key takes at most 1.1 KB without its window', async () => {
  const { redis, store } = await start();
  await store.records.createCustomer({
    id: 'customer-0123456789',
    plan: 'professional',
    name: 'A Company of Some Size Ltd',
    suspended: false,
  });
  const sha256 = sha256Hex(createApiKey());
  await createKeyWithCustomer(store.records, sha256, {
    id: 'key_0123456789ABCDEFGHI',
    customer: 'customer-0123456789',
    name: 'production',
    prefix: 'tg_01234567',
    createdAt: AT,
  });
  await store.keyUses.noteUses([{ keyId: 'key_0123456789ABCDEFGHI', usedAtMs: Date.parse(AT) }]);
  const names = [
    'customer:{customer-0123456789}',
    `key:${sha256}`,
    'key-id:key_0123456789ABCDEFGHI',
    'customer-keys:{customer-0123456789}',
    'key-uses',
  ];
  const bytes = await Promise.all(names.map((name) => bytesOf(redis, `tollgate:${name}`)));
  expect(bytes.every((each) => each > 0)).toBe(true);
  expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(1100);
});
