/** Keys in memory over a real Redis, in which another program writes. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Authenticator } from '../../../src/customers/keys/authenticator.ts';
import { sha256Hex } from '../../../src/formats/api-key.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import type { Invalidation } from '../../../src/store/invalidations.ts';
import { openRedisStore } from '../../../src/store/redis/redis-store.ts';
import { startRedis } from '../../support/redis-server.ts';
import { acceptAsEmpty } from '../../support/redis-system.ts';
import { silent } from '../../support/silent.ts';

const TOKEN = 'a-key-made-elsewhere';
const KEY_NAME = `test:key:${sha256Hex(TOKEN)}`;
const CUSTOMER_NAME = 'test:customer:{acme}';
const TIMEOUT_MS = 2000;

async function setUp() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  await acceptAsEmpty(redis, 'test');
  const store = await openRedisStore({
    url: redis.url,
    keyPrefix: 'test',
    timeoutMs: TIMEOUT_MS,
    ...silent,
  });
  onTestFinished(() => store.close());
  const authenticator = new Authenticator({
    records: store.records,
    invalidations: store.invalidations,
    clock: systemClock,
    cacheMs: 60_000,
    entries: 100,
    staleIfErrorMs: 3_600_000,
  });
  onTestFinished(() => authenticator.close());

  /** Writes as another program does, and waits until the push has come. */
  async function write(kind: Invalidation['kind'], ...command: string[]): Promise<void> {
    const pushed = Promise.withResolvers<void>();
    const stop = store.invalidations.subscribe((invalidation) => invalidation.kind === kind && pushed.resolve());
    const [name = '', ...rest] = command;
    await redis.command(name, ...rest);
    await pushed.promise;
    stop();
  }
  async function seed(): Promise<void> {
    await redis.command('HSET', KEY_NAME, 'id', 'key_1', 'customer', 'acme');
    await redis.command('HSET', CUSTOMER_NAME, 'plan', 'starter');
  }
  return { redis, authenticator, write, seed };
}

test('what another program writes into Redis is effective with the push', async () => {
  const { authenticator, write } = await setUp();
  expect(await authenticator.authenticate(TOKEN)).toEqual({ outcome: 'invalid', reason: 'unknown' });

  await write('key', 'HSET', KEY_NAME, 'id', 'key_1', 'customer', 'acme');
  expect(await authenticator.authenticate(TOKEN)).toMatchObject({ outcome: 'known', customer: undefined });

  await write('customer', 'HSET', CUSTOMER_NAME, 'plan', 'starter');
  expect(await authenticator.authenticate(TOKEN)).toMatchObject({ customer: { plan: 'starter', suspended: false } });

  await write('customer', 'HSET', CUSTOMER_NAME, 'plan', 'business', 'suspended', '1');
  expect(await authenticator.authenticate(TOKEN)).toMatchObject({ customer: { plan: 'business', suspended: true } });

  await write('key', 'HSET', KEY_NAME, 'revoked_at', '2030-01-01T00:00:00Z');
  expect(await authenticator.authenticate(TOKEN)).toMatchObject({ outcome: 'invalid', reason: 'revoked' });

  await write('key', 'DEL', KEY_NAME);
  expect(await authenticator.authenticate(TOKEN)).toEqual({ outcome: 'invalid', reason: 'unknown' });
});

test('after FLUSHALL a known key stays known, and no other is called unknown', async () => {
  const { authenticator, write, seed } = await setUp();
  await seed();
  const before = await authenticator.authenticate(TOKEN);
  expect(before).toMatchObject({ outcome: 'known', customer: { plan: 'starter' } });

  await write('all', 'FLUSHALL');
  expect(await authenticator.authenticate(TOKEN)).toBe(before);
  await expect(authenticator.authenticate('a-key-never-seen')).rejects.toBeInstanceOf(StoreUnavailableError);
});

test('a Redis that has stopped or died keeps no known key from being answered', async () => {
  const { redis, authenticator, seed } = await setUp();
  await seed();
  const before = await authenticator.authenticate(TOKEN);

  redis.pause();
  expect(await authenticator.authenticate(TOKEN)).toBe(before);
  await expect(authenticator.authenticate('a-key-never-seen')).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(await authenticator.authenticate(TOKEN)).toBe(before);

  await redis.kill();
  expect(await authenticator.authenticate(TOKEN)).toBe(before);
  await expect(authenticator.authenticate('a-key-never-seen')).rejects.toBeInstanceOf(StoreUnavailableError);
});
