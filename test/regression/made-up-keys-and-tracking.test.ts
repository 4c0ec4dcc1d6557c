/**
 * Redis remembered every name that a gateway had read, so that made-up keys filled its tracking table: 185 bytes each, up
 * to 176 MiB, by anybody without a key. Beyond `tracking-table-max-keys` Redis reports good records as changed to make
 * room, and gateways dropped them: in an outage then, known keys got 503.
 */
import { expect, onTestFinished, test } from 'vitest';
import { sha256Hex } from '../../src/formats/api-key.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { refundOf, request } from '../store/contract.ts';
import { RecordedInvalidations } from '../store/recorded-invalidations.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';

const TABLE_KEYS = 10;
const KNOWN_KEYS = 50;
const MADE_UP_KEYS = 500;

async function setUp() {
  const redis = await startRedis({ args: ['--tracking-table-max-keys', String(TABLE_KEYS)] });
  onTestFinished(() => redis.stop());
  const known = Array.from({ length: KNOWN_KEYS }, (_, i) => sha256Hex(`known-${i}`));
  for (const [i, sha256] of known.entries()) {
    await redis.command('HSET', `test:key:${sha256}`, 'id', `k${i}`, 'customer', 'acme');
  }
  await redis.command('HSET', 'test:customer:{acme}', 'plan', 'starter');
  const store = await openRedisStore({ url: redis.url, keyPrefix: 'test', timeoutMs: 2000, ...silent });
  onTestFinished(() => store.close());
  return { redis, store, known, pushed: new RecordedInvalidations(store.invalidations) };
}

async function tracked(redis: RedisServer, what: 'keys' | 'items' | 'prefixes'): Promise<number> {
  const stats = String(await redis.command('INFO', 'stats'));
  return Number(new RegExp(`^tracking_total_${what}:(\\d+)`, 'm').exec(stats)?.[1]);
}

test('what gateways read takes no memory in Redis, and drives no good record out of theirs', async () => {
  const { redis, store, known, pushed } = await setUp();
  for (const sha256 of known) expect(await store.records.findKey(sha256)).toBeDefined();
  const madeUp = Array.from({ length: MADE_UP_KEYS }, (_, i) => sha256Hex(`made-up-${i}`));
  for (const sha256 of madeUp) expect(await store.records.findKey(sha256)).toBeUndefined();
  expect(await tracked(redis, 'keys')).toBe(0);
  expect(await tracked(redis, 'items')).toBe(0);

  // A push that comes after all others: there was none before it.
  await redis.command('HSET', 'test:customer:{acme}', 'plan', 'business');
  expect(await pushed.atLeast(1)).toEqual([{ kind: 'customer', id: 'acme' }]);
});

test('only the names of records and of the installation are pushed: no window, index or audit entry', async () => {
  const { redis, store } = await setUp();
  expect(await tracked(redis, 'prefixes')).toBe(4);
  const prefixes = ['test:key:', 'test:customer:', 'test:installed', 'test:maintenance'];
  const asked = request({ need: 2 });
  await store.windows.reserve(asked);
  await store.windows.refund('acme', [refundOf(asked, 1)]);
  await store.announce('instance');
  await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }]);
  await store.audit.append({ at: '2026-01-01T00:00:00Z', actor: 'token', from: '::1', action: 'key.revoke' });
  await createKeyWithCustomer(store.records, sha256Hex('new'), { id: 'new', customer: 'acme' });

  const names = (await redis.command('KEYS', 'test:*')) as string[];
  const isPushed = (name: string) => prefixes.some((prefix) => name.startsWith(prefix));
  expect(names.filter((name) => !isPushed(name)).toSorted()).toEqual([
    'test:audit',
    'test:customer-keys:{acme}',
    'test:grants:{acme}',
    'test:instances',
    'test:key-id:new',
    'test:key-uses',
    'test:window:{acme}',
  ]);
});
