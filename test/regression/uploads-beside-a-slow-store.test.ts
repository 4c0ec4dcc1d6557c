/**
 * While the store decided about an upload: if its client reset the connection, the request was held until `request_timeout_ms`; if the
 * rest of the body arrived, a refusal kept the connection, whose next request was then never read.
 */
import { setTimeout } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { startBodySystem } from '../bodies/support.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import type { StoreKind } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startRedis } from '../support/redis-server.ts';

const BODY_BYTES = 17_000; // above what is buffered

async function startBesideSlowStore() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const proxy: FaultProxy = await startFaultProxy(redis);
  const store: StoreKind = {
    name: 'a slow Redis',
    start: async () => ({ url: `redis://127.0.0.1:${proxy.port}`, close: async () => {} }),
  };
  const config = { store: { timeout_ms: 2_000 } };
  const customer = { id: 'acme', plan: 'starter', requests_per_hour: 1 };
  return { proxy, ...(await startBodySystem({ store, customer, config })) };
}

it('a client that resets its connection while its key is looked up ends its request', async () => {
  const { proxy, gateway, open, backend } = await startBesideSlowStore();
  proxy.delay(1500);
  const client = open('POST /api/a', `Content-Length: ${BODY_BYTES}`);
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
  client.socket.resetAndDestroy();
  await expect
    .poll(() => gateway.logs.find(({ msg, method }) => msg === 'request' && method === 'POST'))
    .toMatchObject({ status: 499 });
  expect(backend.seen).toHaveLength(0);
});

it('a refusal that comes when the whole body has arrived leaves no connection open whose requests are not read', async () => {
  const { proxy, open } = await startBesideSlowStore();
  await open('GET /api/a').until(/200 OK/);
  const client = open('POST /api/a', `Content-Length: ${BODY_BYTES}`);
  proxy.delay(300);
  client.send(Buffer.alloc(BODY_BYTES - 100, 'a'));
  await setTimeout(50);
  client.send(Buffer.alloc(100, 'a'));
  expect(await client.until(/quota_exceeded/)).toMatch(/\r\nConnection: close\r\n/i);
  await client.untilEnd();
});
