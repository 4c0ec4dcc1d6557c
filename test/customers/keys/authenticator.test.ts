import { describe, expect, test } from 'vitest';
import { type Authentication, Authenticator, type KnownKey } from '../../../src/customers/keys/authenticator.ts';
import { createApiKey, sha256Hex } from '../../../src/formats/api-key.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import type { Invalidation } from '../../../src/store/invalidations.ts';
import type { CustomerRecord, KeyRecord } from '../../../src/store/record-fields.ts';
import { HeldClock } from './held-clock.ts';
import { HeldReads } from './held-reads.ts';

const TOKEN = 'a-key-made-elsewhere';
const OTHER_TOKEN = 'another-key-made-elsewhere';
const SHA256 = sha256Hex(TOKEN);
const KEY: KeyRecord = { id: 'key_1', customer: 'acme' };
/** As an invalid key has them. */
const IDS = { keyId: KEY.id, customer: KEY.customer };
const ACME: CustomerRecord = { id: 'acme', plan: 'starter', suspended: false };
const CACHE_MS = 30_000;
const STALE_MS = 3_600_000;

function setUp() {
  const clock = new HeldClock();
  const keys = new HeldReads<KeyRecord>();
  const customers = new HeldReads<CustomerRecord>();
  const listeners = new Set<(invalidation: Invalidation) => void>();
  const authenticator = new Authenticator({
    records: { findKey: keys.read, findCustomer: customers.read },
    invalidations: {
      provenAtMs: Number.NEGATIVE_INFINITY,
      subscribe(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
    clock,
    cacheMs: CACHE_MS,
    entries: 100,
    staleIfErrorMs: STALE_MS,
  });
  const push = (invalidation: Invalidation) => {
    for (const listener of listeners) listener(invalidation);
  };
  /** The outcome for a token whose records must be read. */
  async function load(
    token = TOKEN,
    key: KeyRecord | undefined = KEY,
    customer: CustomerRecord | undefined = ACME,
  ): Promise<Authentication> {
    const outcome = authenticator.authenticate(token);
    await keys.answer(key);
    if (customers.open > 0) await customers.answer(customer);
    return outcome;
  }
  return { authenticator, clock, keys, customers, listeners, push, load };
}

describe('a key that is known', () => {
  test('is answered with one object, without a promise, while its records stay as they are', async () => {
    const { authenticator, load } = setUp();
    const first = await load();
    expect(first).toMatchObject({ outcome: 'known', key: KEY, expiresAtMs: undefined, customer: ACME });
    expect(authenticator.authenticate(TOKEN)).toBe(first);
    expect(authenticator.authenticate(TOKEN)).toBe(first);
  });

  test('is answered with the same object after its records were read again unchanged', async () => {
    const { authenticator, clock, load } = setUp();
    const first = await load();
    clock.advance(CACHE_MS);
    expect(await load(TOKEN, { ...KEY }, { ...ACME })).toBe(first);
    expect(authenticator.authenticate(TOKEN)).toBe(first);
  });

  test('has one record of its use, whatever becomes of its customer', async () => {
    const { clock, load } = setUp();
    const first = (await load()) as KnownKey;
    first.flushesWhenNoted = 7;
    clock.advance(CACHE_MS);
    expect(await load(TOKEN, { ...KEY }, { ...ACME, plan: 'business' })).toMatchObject({ flushesWhenNoted: 7 });
  });

  test('is answered to each request with the customer of that request, whatever later ones get', async () => {
    const { clock, load } = setUp();
    const results: Authentication[] = [];
    for (const plan of ['starter', 'business', 'enterprise']) {
      results.push(await load(TOKEN, { ...KEY }, { ...ACME, plan }));
      clock.advance(CACHE_MS);
    }
    expect(results).toMatchObject(['starter', 'business', 'enterprise'].map((plan) => ({ customer: { plan } })));
  });

  test('is what its records say when they are read again, without any push', async () => {
    const { clock, load } = setUp();
    await load();
    clock.advance(CACHE_MS);
    const renamed = { ...KEY, name: 'production' };
    const business = { ...ACME, plan: 'business' };
    expect(await load(TOKEN, renamed, business)).toMatchObject({ key: renamed, customer: business });
    clock.advance(CACHE_MS);
    const revoked = { ...renamed, revokedAt: '2030-01-01T00:00:00Z' };
    expect(await load(TOKEN, revoked)).toEqual({ outcome: 'invalid', reason: 'revoked', ...IDS });
  });

  test('is asked for by the SHA-256 of the token, and its customer by id', async () => {
    const { keys, customers, load } = setUp();
    await load();
    expect(keys.asked).toEqual([SHA256]);
    expect(customers.asked).toEqual(['acme']);
  });

  test('shares the record of its customer with the customer’s other keys', async () => {
    const { customers, load } = setUp();
    await load();
    await load(OTHER_TOKEN, { id: 'key_2', customer: 'acme' });
    expect(customers.asked).toEqual(['acme']);
  });

  test('is known without its customer, which is looked for again after five seconds', async () => {
    const { authenticator, clock, keys, customers } = setUp();
    const waiting = authenticator.authenticate(TOKEN);
    await keys.answer(KEY);
    await customers.answer(undefined);
    const without = await waiting;
    expect(without).toMatchObject({ outcome: 'known', key: KEY, expiresAtMs: undefined, customer: undefined });
    expect(authenticator.authenticate(TOKEN)).toBe(without);

    clock.advance(5000);
    const again = authenticator.authenticate(TOKEN);
    await customers.answer(ACME);
    expect(await again).toMatchObject({ outcome: 'known', customer: ACME });
  });
});

describe('a key is refused', () => {
  test('for its checksum without asking anybody', () => {
    const { authenticator, keys } = setUp();
    const key = createApiKey();
    const mistyped = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
    expect(authenticator.authenticate(mistyped)).toEqual({ outcome: 'invalid', reason: 'checksum' });
    expect(keys.asked).toEqual([]);
  });

  test('as unknown, from memory after the first time', async () => {
    const { authenticator, keys } = setUp();
    const first = authenticator.authenticate(TOKEN);
    await keys.answer(undefined);
    expect(await first).toEqual({ outcome: 'invalid', reason: 'unknown' });
    expect(authenticator.authenticate(TOKEN)).toEqual({ outcome: 'invalid', reason: 'unknown' });
  });

  test('as revoked, from memory after the first time, without its customer', async () => {
    const { authenticator, customers, load } = setUp();
    const revoked = { outcome: 'invalid', reason: 'revoked', ...IDS };
    expect(await load(TOKEN, { ...KEY, revokedAt: '2029-12-31T00:00:00Z' })).toEqual(revoked);
    expect(authenticator.authenticate(TOKEN)).toEqual(revoked);
    expect(customers.asked).toEqual([]);
  });

  test('from the instant of its expiry on, though its record is in memory', async () => {
    const { authenticator, clock, load } = setUp();
    const expiresAtMs = clock.nowMs() + 1000;
    const expiresAt = new Date(expiresAtMs).toISOString();
    expect(await load(TOKEN, { ...KEY, expiresAt })).toMatchObject({ outcome: 'known', expiresAtMs });
    clock.advance(999);
    expect(authenticator.authenticate(TOKEN)).toMatchObject({ outcome: 'known' });
    clock.advance(1);
    expect(authenticator.authenticate(TOKEN)).toEqual({ outcome: 'invalid', reason: 'expired', ...IDS });
  });

  test.each([
    'next year',
    'Jan 1 2099',
    '2099-01-01',
    '2099-01-01T00:00:00',
    '2099-02-30T00:00:00Z',
    '2099-13-01T00:00:00Z',
  ])('when its expiry is %s, which is no time with an offset', async (expiresAt) => {
    const { load } = setUp();
    expect(await load(TOKEN, { ...KEY, expiresAt })).toEqual({ outcome: 'invalid', reason: 'expired', ...IDS });
  });

  test.each(['2099-02-28T00:00:00Z', '2099-01-01T00:00:00.123Z', '2099-01-01T01:00:00+01:00'])(
    'not while its expiry, %s, lies ahead',
    async (expiresAt) => {
      const { load } = setUp();
      expect(await load(TOKEN, { ...KEY, expiresAt })).toMatchObject({ outcome: 'known' });
    },
  );

  test.each([
    ['a key id with a line break', { ...KEY, id: 'key\r\nX-Tollgate-Plan: enterprise' }],
    ['a key id that ends with a line break', { ...KEY, id: 'key_1\n' }],
    ['a key id with a space', { ...KEY, id: 'key 1' }],
    ['a key id beyond ASCII', { ...KEY, id: 'kéy' }],
    ['an empty key id', { ...KEY, id: '' }],
    ['a key id of 257 characters', { ...KEY, id: 'k'.repeat(257) }],
    ['a customer id with a line break', { ...KEY, customer: 'acme\n' }],
    ['a customer id with a brace', { ...KEY, customer: 'ac}me' }],
    ['a customer id that begins with a dot', { ...KEY, customer: '.acme' }],
    ['an empty customer id', { ...KEY, customer: '' }],
    ['a customer id of 129 characters', { ...KEY, customer: 'a'.repeat(129) }],
  ])('as unusable for %s, which could not be sent on; only the other one is told', async (_case, record) => {
    const { customers, load } = setUp();
    const usable = record.id === KEY.id ? { keyId: KEY.id } : { customer: KEY.customer };
    expect(await load(TOKEN, record)).toEqual({ outcome: 'invalid', reason: 'unusable', ...usable });
    expect(customers.asked).toEqual([]);
  });

  test('not for ids of all the characters and the length that are allowed', async () => {
    const { load } = setUp();
    const record = { id: `!~${'k'.repeat(126)}`, customer: `0._:@-${'Z'.repeat(122)}` };
    expect(await load(TOKEN, record)).toMatchObject({ outcome: 'known', key: record });
  });
});

describe('a push', () => {
  test('of a revoked key ends it at once', async () => {
    const { authenticator, keys, push, load } = setUp();
    await load();
    push({ kind: 'key', sha256: SHA256 });
    const after = authenticator.authenticate(TOKEN);
    await keys.answer({ ...KEY, revokedAt: '2030-01-01T00:00:00Z' });
    expect(await after).toEqual({ outcome: 'invalid', reason: 'revoked', ...IDS });
  });

  test('of a changed customer is seen by all of its keys, and nothing else is read again', async () => {
    const { authenticator, keys, customers, push, load } = setUp();
    await load();
    await load(OTHER_TOKEN, { id: 'key_2', customer: 'acme' });
    push({ kind: 'customer', id: 'acme' });
    const after = authenticator.authenticate(TOKEN);
    const suspended = { ...ACME, suspended: true };
    await customers.answer(suspended);
    expect(await after).toMatchObject({ outcome: 'known', customer: suspended });
    expect(authenticator.authenticate(OTHER_TOKEN)).toMatchObject({ outcome: 'known', customer: suspended });
    expect(keys.asked).toHaveLength(2);
  });

  test('of a key that was unknown lets it in at once', async () => {
    const { authenticator, keys, push, load } = setUp();
    const before = authenticator.authenticate(TOKEN);
    await keys.answer(undefined);
    await before;
    push({ kind: 'key', sha256: SHA256 });
    expect(await load()).toMatchObject({ outcome: 'known' });
  });

  test('of everything has keys and customers read again', async () => {
    const { keys, customers, push, load } = setUp();
    await load();
    push({ kind: 'all' });
    const changed = { ...ACME, plan: 'business' };
    expect(await load(TOKEN, KEY, changed)).toMatchObject({ outcome: 'known', customer: changed });
    expect([keys.asked.length, customers.asked.length]).toEqual([2, 2]);
  });

  test('is not listened to any more after closing', () => {
    const { authenticator, listeners } = setUp();
    expect(listeners.size).toBe(1);
    authenticator.close();
    expect(listeners.size).toBe(0);
  });
});

describe('while the store is unavailable', () => {
  /** Everything in memory is to be read again, and that fails. */
  async function loseStore(parts: ReturnType<typeof setUp>): Promise<Authentication> {
    parts.push({ kind: 'all' });
    const outcome = parts.authenticator.authenticate(TOKEN);
    await parts.keys.fail();
    if (parts.customers.open > 0) await parts.customers.fail();
    return outcome;
  }

  test('a known key stays known, soon without a promise', async () => {
    const parts = setUp();
    const before = await parts.load();
    expect(await loseStore(parts)).toBe(before);
    expect(parts.authenticator.authenticate(TOKEN)).toBe(before);
  });

  test('a key goes on being revoked', async () => {
    const parts = setUp();
    const before = await parts.load(TOKEN, { ...KEY, revokedAt: '2029-12-31T00:00:00Z' });
    expect(await loseStore(parts)).toEqual(before);
  });

  test('a key still expires', async () => {
    const parts = setUp();
    await parts.load(TOKEN, { ...KEY, expiresAt: new Date(parts.clock.nowMs() + 1000).toISOString() });
    parts.clock.advance(1000);
    expect(await loseStore(parts)).toEqual({ outcome: 'invalid', reason: 'expired', ...IDS });
  });

  test('a customer goes on being suspended', async () => {
    const parts = setUp();
    await parts.load(TOKEN, KEY, { ...ACME, suspended: true });
    expect(await loseStore(parts)).toMatchObject({ outcome: 'known', customer: { suspended: true } });
  });

  test('a key is not called unknown but rejects, whether it is new or its customer is', async () => {
    const { authenticator, keys, customers } = setUp();
    const unknown = authenticator.authenticate(OTHER_TOKEN);
    await Promise.all([expect(unknown).rejects.toBeInstanceOf(StoreUnavailableError), keys.fail()]);

    const withoutCustomer = authenticator.authenticate(TOKEN);
    await keys.answer(KEY);
    await Promise.all([expect(withoutCustomer).rejects.toBeInstanceOf(StoreUnavailableError), customers.fail()]);
  });

  test('a store that lost its data is one that is unavailable', async () => {
    class Wiped extends StoreUnavailableError {}
    const { authenticator, clock, keys, load } = setUp();
    const before = await load();
    clock.advance(CACHE_MS - 1);
    authenticator.authenticate(TOKEN);
    await keys.fail(new Wiped('the store lost its data'));
    expect(authenticator.authenticate(TOKEN)).toBe(before);
  });
});
