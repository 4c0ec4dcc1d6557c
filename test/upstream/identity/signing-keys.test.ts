import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { Assertions } from '../../../src/upstream/identity/assertions.ts';
import { importSigningKeys } from '../../../src/upstream/identity/signing-keys.ts';
import { HeldClock } from '../../customers/keys/held-clock.ts';
import { createPemPair } from './support.ts';

const AUDIENCE = 'http://backend:3000';

it('what is published is public, and each key is named by its thumbprint', async () => {
  const [one, two] = [createPemPair(), createPemPair()];
  const { kid, published } = await importSigningKeys([one.privatePem, two.publicPem]);
  expect(published.keys).toHaveLength(2);
  expect(published.keys[0]?.kid).toBe(kid);
  for (const jwk of published.keys) {
    expect(Object.keys(jwk).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
    expect(jwk).toMatchObject({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' });
    expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk));
  }
});

it('a key is published alike by its private and its public half', async () => {
  const [one, two] = [createPemPair(), createPemPair()];
  const { published } = await importSigningKeys([one.privatePem, two.publicPem]);
  expect((await importSigningKeys([one.privatePem, two.privatePem])).published).toEqual(published);
});

describe('a change of keys', () => {
  /** A gateway at one step: what it publishes, and an assertion of it. */
  async function step(pems: readonly string[]) {
    const clock = new HeldClock();
    const keys = await importSigningKeys(pems);
    const options = { keys, issuer: 'tollgate', ttlSeconds: 60, clock, entries: 10 };
    return {
      published: keys.published,
      assertion: await new Assertions(options).of('acme', 'starter', 'key_1', AUDIENCE),
      clock,
    };
  }

  type Step = Awaited<ReturnType<typeof step>>;

  function verifies({ published, clock }: Step, { assertion }: Step): Promise<boolean> {
    const options = {
      algorithms: ['EdDSA'],
      issuer: 'tollgate',
      audience: AUDIENCE,
      currentDate: new Date(clock.nowMs()),
    };
    return jwtVerify(assertion, createLocalJWKSet(published), options).then(
      () => true,
      () => false,
    );
  }

  const [old, next] = [createPemPair(), createPemPair()];

  it('publish, switch, retire: backends verify the assertions of the step before and of the step after', async () => {
    const steps = await Promise.all(
      [[old.privatePem], [old.privatePem, next.privatePem], [next.privatePem, old.publicPem], [next.privatePem]].map(
        step,
      ),
    );
    for (const [i, now] of steps.entries()) {
      const before = steps[i - 1] ?? now;
      expect(await verifies(before, now), `keys of step ${i - 1}, assertion of step ${i}`).toBe(true);
      expect(await verifies(now, before), `keys of step ${i}, assertion of step ${i - 1}`).toBe(true);
    }
  });

  it('switching without having published is refused by backends that have the keys from before', async () => {
    expect(await verifies(await step([old.privatePem]), await step([next.privatePem, old.publicPem]))).toBe(false);
  });
});
