import { expect, onTestFinished, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.ts';
import type { TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startRedisSystem, writeCustomer, writeKey } from '../support/redis-system.ts';
import { ask } from '../support/steady-load.ts';

const CUSTOMERS = 150;
const UNKNOWN = 300;
/** What tells the last use of each key, once, and what finds out whether Redis answers again. A call for each is more. */
const MOST_BYTES = 100 * CUSTOMERS + 10_000;

async function recordReads(gateway: TestGateway): Promise<number> {
  const calls = await readMetric(gateway, 'tollgate_store_calls_total');
  return (calls['op="read_key"'] ?? 0) + (calls['op="read_customer"'] ?? 0);
}

test('the number of calls that wait for a silent Redis does not grow with the number of requests', async () => {
  let proxy: Awaited<ReturnType<typeof startFaultProxy>> | undefined;
  const { redis, gateway } = await startRedisSystem({
    config: { store: { timeout_ms: 2000 }, auth: { failures_per_minute: 1_000_000 } },
    prepare: async (server) => {
      proxy = await startFaultProxy(server);
      return `redis://127.0.0.1:${proxy.port}`;
    },
  });
  if (proxy === undefined) throw new Error('there is a proxy');
  const known = Array.from({ length: CUSTOMERS }, (_, i) => `key-of-customer-${i}`);
  for (const [i, key] of known.entries()) {
    await writeCustomer(redis, `customer-${i}`, { plan: 'starter' });
    await writeKey(redis, key, `customer-${i}`);
    expect((await ask(gateway.public, key)).status).toBe(200);
  }
  const askAll = async (keys: readonly string[]) => {
    const answers = await Promise.all(keys.map((key) => ask(gateway.public, key)));
    return new Set(answers.map(({ status, code }) => `${status} ${code ?? ''}`));
  };
  const unknown = (wave: number) => Array.from({ length: UNKNOWN }, (_, i) => `nobody-knows-${wave}-${i}`);
  const readsToServeKnown = async () => {
    const before = await recordReads(gateway);
    await askAll(known);
    return (await recordReads(gateway)) - before;
  };
  // The push of a record's write can come after its first read, and has it read again.
  await expect.poll(readsToServeKnown, { timeout: 10_000 }).toBe(0);

  proxy.stall();
  onTestFinished(() => proxy?.resume());
  // The first ones are sent to it, and wait.
  expect(await askAll(unknown(1).slice(0, 1))).toEqual(new Set(['503 store_unavailable']));
  expect(await askAll(known.slice(0, 1))).toEqual(new Set(['200 ']));
  const before = proxy.received;
  for (let wave = 2; wave < 5; wave += 1) {
    expect(await askAll(unknown(wave))).toEqual(new Set(['503 store_unavailable']));
    expect(await askAll(known)).toEqual(new Set(['200 ']));
  }
  expect(proxy.received - before).toBeLessThan(MOST_BYTES);

  proxy.resume();
  const ready = async () => (await fetch(`${gateway.ops}/readyz`)).json();
  await expect.poll(ready, { timeout: 30_000 }).toMatchObject({ status: 'ready' });
  expect(await askAll(unknown(5))).toEqual(new Set(['401 invalid_key']));
  expect(await askAll(known)).toEqual(new Set(['200 ']));
});
