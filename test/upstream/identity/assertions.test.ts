import { setImmediate } from 'node:timers/promises';
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, importSPKI, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest';
import { Assertions } from '../../../src/upstream/identity/assertions.ts';
import { importSigningKeys, type SigningKeys } from '../../../src/upstream/identity/signing-keys.ts';
import { HeldClock } from '../../customers/keys/held-clock.ts';
import { createPemPair } from './support.ts';

const KEYS = await importSigningKeys([createPemPair().privatePem]);
/** Signs nothing. */
const PUBLIC_KEY = (await importSPKI(createPemPair().publicPem, 'EdDSA')) as SigningKeys['privateKey'];
const AUDIENCE = 'http://backend:3000';
const TTL_MS = 60_000;

let clock: HeldClock;
let assertions: Assertions;
let signatures: MockInstance;
beforeEach(() => {
  clock = new HeldClock();
  assertions = open();
  // The same claims have the same signature, which says nothing of how often it was made.
  signatures = vi.spyOn(crypto.subtle, 'sign');
});

afterEach(() => signatures.mockRestore());

function open({ entries = 100, keys = KEYS as Pick<SigningKeys, 'privateKey' | 'kid'> } = {}) {
  return new Assertions({ keys, issuer: 'tollgate', ttlSeconds: 60, clock, entries });
}

/** Without waiting: undefined where it has to be made. */
function atHand(customer = 'acme', plan = 'starter', keyId = 'key_1'): string | undefined {
  const given = assertions.of(customer, plan, keyId, AUDIENCE);
  if (typeof given === 'string') return given;
  given.catch(() => {});
  return undefined;
}

describe('an assertion', () => {
  it('contains the customer, the audience and the lifetime, and nothing else', async () => {
    clock.wallMs = Date.parse('2030-01-01T00:00:00.900Z');
    const jwt = await assertions.of('acme', 'starter', 'key_1', AUDIENCE);
    const iat = Date.parse('2030-01-01T00:00:00Z') / 1000;
    expect(decodeProtectedHeader(jwt)).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: KEYS.kid });
    const identity = { sub: 'acme', plan: 'starter', key_id: 'key_1' };
    expect(decodeJwt(jwt)).toEqual({ iss: 'tollgate', aud: AUDIENCE, iat, exp: iat + 60, ...identity });
    const options = { algorithms: ['EdDSA'], currentDate: new Date(clock.nowMs()) };
    await jwtVerify(jwt, createLocalJWKSet(KEYS.published), options);
  });

  it('fits into a header field', async () => {
    const jwt = await assertions.of('c'.repeat(128), 'p'.repeat(64), 'k'.repeat(256), AUDIENCE);
    expect(jwt).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(jwt.length).toBeLessThan(2048);
  });
});

describe('is made once', () => {
  it('for all requests that wait for it, and those that follow, which do not wait', async () => {
    const waiting = Array.from({ length: 20 }, () => assertions.of('acme', 'starter', 'key_1', AUDIENCE));
    const [first, ...others] = await Promise.all(waiting);
    for (const other of others) expect(other).toBe(first);
    clock.advance(TTL_MS / 2 - 1);
    expect(atHand()).toBe(first);
    expect(signatures).toHaveBeenCalledTimes(1);
  });

  it('per customer, plan and key', async () => {
    const names = [
      ['acme', 'starter', 'key_1'],
      ['acme', 'starter', 'key_2'],
      ['acme', 'business', 'key_1'],
      ['other', 'starter', 'key_1'],
    ] as const;
    for (const [customer, plan, keyId] of names) await assertions.of(customer, plan, keyId, AUDIENCE);
    for (const [customer, plan, keyId] of names) {
      const identity = { sub: customer, plan, key_id: keyId };
      expect(decodeJwt(atHand(customer, plan, keyId) ?? '')).toMatchObject(identity);
    }
  });
});

describe('is renewed', () => {
  it('from half of its time on, in the background', async () => {
    const first = await assertions.of('acme', 'starter', 'key_1', AUDIENCE);
    clock.advance(TTL_MS / 2);
    expect(atHand()).toBe(first);
    expect(atHand()).toBe(first);
    await expect.poll(() => atHand(), { interval: 1 }).not.toBe(first);
    expect(signatures).toHaveBeenCalledTimes(2);
    expect(decodeJwt(atHand() ?? '').exp).toBe((clock.nowMs() + TTL_MS) / 1000);
  });

  it('before anybody gets it with less than a quarter of its time left', async () => {
    const first = await assertions.of('acme', 'starter', 'key_1', AUDIENCE);
    clock.advance((TTL_MS * 3) / 4 - 1);
    expect(atHand()).toBe(first);
    const late = open();
    await late.of('acme', 'starter', 'key_1', AUDIENCE);
    clock.advance((TTL_MS * 3) / 4);
    const renewed = late.of('acme', 'starter', 'key_1', AUDIENCE);
    expect(renewed).toBeInstanceOf(Promise);
    expect(decodeJwt(await renewed).exp).toBe(Math.floor((clock.nowMs() + TTL_MS) / 1000));
  });

  it.each([-1, 24 * 3_600_000])('at once when the clock is set by %i ms', async (changeMs) => {
    const first = await assertions.of('acme', 'starter', 'key_1', AUDIENCE);
    clock.wallMs += changeMs;
    expect(atHand()).toBeUndefined();
    expect(await assertions.of('acme', 'starter', 'key_1', AUDIENCE)).not.toBe(first);
  });
});

it('a bounded number is kept: the least recently used makes room', async () => {
  assertions = open({ entries: 2 });
  for (const keyId of ['key_1', 'key_2']) await assertions.of('acme', 'starter', keyId, AUDIENCE);
  expect(atHand('acme', 'starter', 'key_1')).toBeDefined();
  await assertions.of('acme', 'starter', 'key_3', AUDIENCE);
  expect(atHand('acme', 'starter', 'key_2')).toBeUndefined();
  expect(atHand('acme', 'starter', 'key_1')).toBeDefined();
});

describe('one that cannot be made', () => {
  it('is an error for waiting requests, and is retried later', async () => {
    const keys = { kid: KEYS.kid, privateKey: PUBLIC_KEY };
    assertions = open({ keys });
    await expect(assertions.of('acme', 'starter', 'key_1', AUDIENCE)).rejects.toThrow();
    keys.privateKey = KEYS.privateKey;
    expect(await assertions.of('acme', 'starter', 'key_1', AUDIENCE)).toBeTypeOf('string');
  });

  it('is no error while the previous assertion is valid', async () => {
    const keys = { ...KEYS };
    assertions = open({ keys });
    const first = await assertions.of('acme', 'starter', 'key_1', AUDIENCE);
    keys.privateKey = PUBLIC_KEY;
    clock.advance(TTL_MS / 2);
    for (let i = 0; i < 3; i++) {
      expect(atHand()).toBe(first);
      await setImmediate();
    }
  });
});
