import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Addresses } from '../../src/upstream/http1/addresses.ts';
import { HeldTime } from './support/held-time.ts';

/** A name whose addresses, or whose lack of any, are the test's. */
function watched(...first: string[]) {
  const time = new HeldTime();
  const seen = { lookups: 0, answer: first as string[] | Error, vanished: [] as boolean[][] };
  const asked = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
  const addresses = new Addresses({
    hostname: 'backend.test',
    async lookup(hostname) {
      expect(hostname).toBe('backend.test');
      seen.lookups++;
      if (seen.answer instanceof Error) throw seen.answer;
      return seen.answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
    scheduler: time,
    vanished: (isKnown) => seen.vanished.push(asked.map(isKnown)),
  });
  return {
    addresses,
    seen,
    /** What one connection is given. */
    give: () =>
      new Promise<string[]>((resolve, reject) => {
        addresses.lookup('backend.test', { all: true }, (error, given) => {
          if (error) reject(error);
          else if (Array.isArray(given)) resolve(given.map(({ address }) => address));
        });
      }),
    async pass(ms: number) {
      time.advance(ms);
      await setImmediate();
    },
  };
}

test('connections share one lookup, and begin with each address in turn', async () => {
  const { give, seen } = watched('10.0.0.1', '10.0.0.2', '10.0.0.3');
  const [first, second] = await Promise.all([give(), give()]);
  expect([first, second, await give(), await give()]).toEqual([
    ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
    ['10.0.0.2', '10.0.0.3', '10.0.0.1'],
    ['10.0.0.3', '10.0.0.1', '10.0.0.2'],
    ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
  ]);
  expect(seen.lookups).toBe(1);
});

test('turns keep to the family that the resolver prefers', async () => {
  const { give } = watched('fd00::1', 'fd00::2', '10.0.0.1');
  expect([await give(), await give()]).toEqual([
    ['fd00::1', 'fd00::2', '10.0.0.1'],
    ['fd00::2', 'fd00::1', '10.0.0.1'],
  ]);
});

test('a change is followed within five seconds', async () => {
  const { give, seen, pass } = watched('10.0.0.1');
  await give();
  seen.answer = ['10.0.0.2'];
  await pass(4_999);
  expect(await give()).toEqual(['10.0.0.1']);
  await pass(1);
  expect(await give()).toEqual(['10.0.0.2']);
});

test('an address has vanished when three lookups in a row leave it out', async () => {
  const { give, seen, pass } = watched('10.0.0.1', '10.0.0.2');
  await give();
  seen.answer = ['10.0.0.2'];
  await pass(5_000);
  await pass(5_000);
  seen.answer = ['10.0.0.1', '10.0.0.2'];
  await pass(5_000);
  seen.answer = ['10.0.0.2', '10.0.0.3'];
  await pass(5_000);
  await pass(5_000);
  expect(seen.vanished).toEqual([]);
  await pass(5_000);
  expect(seen.vanished).toEqual([[false, true, true]]);
});

test('while lookups fail, or find nothing, the last addresses hold', async () => {
  const { give, seen, pass } = watched('10.0.0.1');
  await give();
  for (const answer of [new Error('SERVFAIL'), []]) {
    seen.answer = answer;
    for (let i = 0; i < 5; i++) await pass(5_000);
    expect(await give()).toEqual(['10.0.0.1']);
  }
  expect(seen.vanished).toEqual([]);
});

test('a name without any address fails the connection, and is looked up again for the next', async () => {
  const { give, seen } = watched();
  seen.answer = new Error('ENOTFOUND');
  await expect(give()).rejects.toThrow('ENOTFOUND');
  seen.answer = ['10.0.0.1'];
  expect(await give()).toEqual(['10.0.0.1']);
});

test('closed, it looks up nothing more', async () => {
  const { addresses, seen, pass } = watched('10.0.0.1');
  await pass(5_000);
  addresses.close();
  await pass(50_000);
  expect(seen.lookups).toBe(1);
});
