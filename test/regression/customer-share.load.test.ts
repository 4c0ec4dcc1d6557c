/**
 * The connections to the backend went to whoever asked first. 270 clients of one key that did not read their large
 * responses held all 256 of them, and every other customer got 503 for 25 s, again and again.
 */
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';

const MAX_CONNECTIONS = 32;
const HALF = MAX_CONNECTIONS / 2;
const IN_FLIGHT = 80;
const SHARE = MAX_CONNECTIONS / 4;
const LARGE = '/v1/conversations?large';

async function startLimitedSystem() {
  const system = await startSystem({
    config: { upstream: { max_connections: MAX_CONNECTIONS }, limits: { in_flight: IN_FLIGHT } },
    answer(req, res) {
      // A response that does not end holds its connection as a large one does whose client does not read.
      if (req.url?.includes('large')) res.write('{');
      else res.end('{}');
    },
  });
  const { gateway } = system;
  const large = () => system.backend.seen.filter(({ url }) => url.includes('large')).length;

  /** Asks for a large response. Resolves with a problem document. */
  function askForLarge(key: string): Promise<string> {
    const { hostname, port } = new URL(gateway.public);
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    socket.write(`GET ${LARGE} HTTP/1.1\r\nHost: api.test\r\nAuthorization: ${bearer(key).authorization}\r\n\r\n`);
    return new Promise((resolve, reject) => {
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (text.endsWith('}')) resolve(text);
      });
      socket.once('error', reject);
    });
  }
  return { ...system, large, askForLarge };
}

test('clients of one customer that do not read hold at most half of the connections, and others are served at once', async () => {
  const { gateway, key, large, askForLarge } = await startLimitedSystem();
  const refusals: string[] = [];
  for (let i = 0; i < MAX_CONNECTIONS + 2; i++) void askForLarge(key).then((text) => refusals.push(text));
  await expect.poll(large).toBe(HALF);
  const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
  for (let round = 0; round < 5; round++) {
    const calls = Array.from({ length: HALF }, () =>
      fetch(`${gateway.public}/v1/conversations`, { headers: bearer(other) }),
    );
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(HALF).fill(200));
  }

  await expect.poll(() => refusals.length).toBe(HALF + 2);
  for (const text of refusals) {
    expect(text).toMatch(/^HTTP\/1\.1 503 /);
    expect(text).toMatch(/^retry-after: 1\r$/im);
    expect(text).toContain('"code":"overloaded"');
  }
  expect(large()).toBe(HALF);
  await expect.poll(async () => (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(HALF);
});

test('a customer within its share is served although others use more than half of the connections', async () => {
  const { gateway, key, large, askForLarge } = await startLimitedSystem();
  for (let i = 0; i < HALF; i++) void askForLarge(key);
  await expect.poll(large).toBe(HALF);
  const second = await createCustomerWithKey(gateway, { id: 'second', plan: 'starter' });
  for (let i = 0; i < MAX_CONNECTIONS; i++) void askForLarge(second);
  await expect.poll(large).toBe(HALF + SHARE);
  const third = await createCustomerWithKey(gateway, { id: 'third', plan: 'starter' });
  const calls = Array.from({ length: SHARE }, () =>
    fetch(`${gateway.public}/v1/conversations`, { headers: bearer(third) }),
  );
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(SHARE).fill(200));
});

test('requests of one customer that wait for a connection leave half of limits.in_flight to others', async () => {
  const { gateway, key, large, askForLarge } = await startLimitedSystem();
  const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
  let refused = 0;
  for (let i = 0; i < IN_FLIGHT + 20; i++) void askForLarge(key).then(() => refused++);
  await expect.poll(() => refused).toBeGreaterThanOrEqual(20);
  expect(large()).toBe(HALF);
  expect((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(other) })).status).toBe(200);
});

// Found after a reload that lowered limits.in_flight: a customer could still wait with half of the former number.
test('a reload of limits.in_flight changes how many requests of one customer may wait', async () => {
  const { gateway, key, large, askForLarge } = await startLimitedSystem();
  const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
  await rewrite(gateway, { limits: { in_flight: IN_FLIGHT / 2 } });
  expect(await takeOver(gateway)).toBe('applied');
  let refused = 0;
  for (let i = 0; i < IN_FLIGHT / 2; i++) void askForLarge(key).then(() => refused++);
  await expect.poll(() => refused).toBe(IN_FLIGHT / 2 - HALF - IN_FLIGHT / 4);
  expect(large()).toBe(HALF);
  expect((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(other) })).status).toBe(200);
});

test('a customer whose requests are answered quickly is never refused, however many of them come at once', async () => {
  const { gateway, key } = await startLimitedSystem();
  const calls = Array.from({ length: 2 * MAX_CONNECTIONS - HALF }, async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 10; i++) {
      statuses.push((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status);
    }
    return statuses;
  });
  expect(new Set((await Promise.all(calls)).flat())).toEqual(new Set([200]));
});
