/**
 * Failed keys from one address. Whoever shares an address with a program that goes on with an old key, or with somebody
 * who guesses, must not feel it: only failures count, and only failures are answered otherwise.
 */
import { describe, expect, it } from 'vitest';
import { createApiKey } from '../../src/formats/api-key.ts';
import { bearer } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { keyName, type RedisSystem, startRedisSystem, writeKey } from '../support/redis-system.ts';

const LIMIT = 5;

interface Sent {
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfter: string | null;
}

function start(): Promise<RedisSystem> {
  return startRedisSystem({
    config: { auth: { failures_per_minute: LIMIT }, listen: { trusted_proxies: ['127.0.0.1'] } },
  });
}

async function send({ gateway }: RedisSystem, headers: Record<string, string>, from = '203.0.113.9'): Promise<Sent> {
  const answer = await fetch(`${gateway.public}/v1/conversations`, {
    headers: { ...headers, 'X-Forwarded-For': from },
  });
  const { code } = (await answer.json()) as { code?: string };
  return { status: answer.status, code, retryAfter: answer.headers.get('retry-after') };
}

/** Fails until the address is told to wait. */
async function exhaust(system: RedisSystem, from?: string): Promise<void> {
  for (let i = 0; i < LIMIT; i++) expect(await send(system, bearer(`unknown-key-${i}`), from)).toMatchObject(INVALID);
}

const INVALID = { status: 401, code: 'invalid_key', retryAfter: null };
const TOO_MANY = { status: 429, code: 'too_many_failures' };
const SERVED = { status: 200, code: undefined, retryAfter: null };

describe('once an address has failed too often', () => {
  it('a failed key gets 429 with Retry-After, for any reason', async () => {
    const system = await start();
    const { redis, customer } = system;
    await writeKey(redis, 'revoked-key', customer);
    await redis.command('HSET', keyName('revoked-key'), 'revoked_at', '2020-01-01T00:00:00Z');
    await writeKey(redis, 'expired-key', customer);
    await redis.command('HSET', keyName('expired-key'), 'expires_at', '2020-01-01T00:00:00Z');
    const generated = createApiKey();
    const mistyped = generated.slice(0, -1) + (generated.endsWith('a') ? 'b' : 'a');
    await exhaust(system);
    for (const key of ['unknown-key-0', 'never-seen-key', 'revoked-key', 'expired-key', mistyped]) {
      const answer = await send(system, bearer(key));
      expect(answer).toMatchObject(TOO_MANY);
      expect(Number(answer.retryAfter)).toBeGreaterThan(50);
      expect(Number(answer.retryAfter)).toBeLessThanOrEqual(61);
    }
    expect(system.backend.seen).toEqual([]);
    expect(await readMetric(system.gateway, 'tollgate_refusals_total')).toEqual({
      'problem="invalid_key",plan="none"': LIMIT,
      'problem="too_many_failures",plan="none"': 5,
    });
  });

  it('a valid key is served, cached or not', async () => {
    const system = await start();
    await writeKey(system.redis, 'known-key', system.customer);
    expect(await send(system, bearer('known-key'))).toEqual(SERVED);
    await exhaust(system);
    expect(await send(system, bearer('unknown-key-0'))).toMatchObject(TOO_MANY);
    expect(await send(system, bearer('known-key'))).toEqual(SERVED);
    expect(await send(system, bearer(system.key))).toEqual(SERVED);
    await writeKey(system.redis, 'unknown-key-0', system.customer);
    await expect.poll(() => send(system, bearer('unknown-key-0'))).toEqual(SERVED);
  });

  it('missing and malformed credentials get their usual responses', async () => {
    const system = await start();
    await exhaust(system);
    expect(await send(system, {})).toMatchObject({ status: 401, code: 'missing_key' });
    expect(await send(system, { authorization: 'Bearer !' })).toMatchObject({ status: 400, code: 'malformed_key' });
  });

  it('a key that cannot be looked up is not called a failed one', async () => {
    const system = await start();
    await exhaust(system);
    await system.redis.kill();
    expect(await send(system, bearer('never-seen-key'))).toMatchObject({ status: 503, code: 'store_unavailable' });
  });

  it('others are not made to wait', async () => {
    const system = await start();
    await exhaust(system);
    expect(await send(system, bearer('unknown-key-0'), '203.0.113.10')).toEqual(INVALID);
    await exhaust(system, '2001:db8:0:1::1');
    expect(await send(system, bearer('unknown-key-0'), '2001:db8:0:1:ffff::2')).toMatchObject(TOO_MANY);
    expect(await send(system, bearer('unknown-key-0'), '2001:db8:0:2::1')).toEqual(INVALID);
  });

  it('a header from an untrusted peer does not count failures for another address', async () => {
    const system = await start();
    // The nearest hop that is not trusted is the caller; what stands before it is the caller's own claim.
    await exhaust(system, '198.51.100.7, 203.0.113.9');
    expect(await send(system, bearer('unknown-key-0'), '198.51.100.7')).toEqual(INVALID);
    expect(await send(system, bearer('unknown-key-0'), '192.0.2.1, 203.0.113.9')).toMatchObject(TOO_MANY);
  });
});

describe('failures are only what failed', () => {
  it('good keys, missing and malformed ones, and keys in a query are not counted', async () => {
    const system = await start();
    for (let i = 0; i < 2 * LIMIT; i++) {
      expect(await send(system, bearer(system.key))).toEqual(SERVED);
      await send(system, {});
      await send(system, { authorization: 'Bearer !' });
      await fetch(`${system.gateway.public}/v1/conversations?key=${createApiKey()}`, {
        headers: { 'X-Forwarded-For': '203.0.113.9' },
      });
    }
    await exhaust(system);
    expect(await send(system, bearer('unknown-key-0'))).toMatchObject(TOO_MANY);
  });

  it('a mistyped key counts without a store call', async () => {
    const system = await start();
    const generated = createApiKey();
    const mistyped = generated.slice(0, -1) + (generated.endsWith('a') ? 'b' : 'a');
    for (let i = 0; i < LIMIT; i++) expect(await send(system, bearer(mistyped))).toEqual(INVALID);
    expect(await send(system, bearer(mistyped))).toMatchObject(TOO_MANY);
    expect(await readMetric(system.gateway, 'tollgate_store_calls_total')).not.toHaveProperty('op="read_key"');
  });
});
