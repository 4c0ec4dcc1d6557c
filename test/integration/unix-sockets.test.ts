/** The store and the backend by their unix sockets, as they are used on one machine. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startTestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';

async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-unix-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [store, backend] = [join(folder, 'redis.sock'), join(folder, 'backend.sock')];
  const redis = await startRedis({ args: ['--unixsocket', store, '--requirepass', 'secret'], password: 'secret' });
  onTestFinished(() => redis.stop());
  const hosts: (string | undefined)[] = [];
  const server = createServer((req, res) => {
    hosts.push(req.headers.host);
    res.end(`{"path":"${req.url}"}`);
  });
  await new Promise<void>((resolve) => server.listen(backend, resolve));
  onTestFinished(() => void server.close());
  const gateway = await startTestGateway({ storeUrl: `unix://:secret@${store}`, upstreamUrl: `unix:${backend}` });
  onTestFinished(() => gateway.close());
  return { gateway, server, hosts, backend };
}

test('a request passes by the sockets of Redis and of the backend, and is counted', async () => {
  const { gateway, hosts } = await start();
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const response = await fetch(`${gateway.public}/v1/conversations?a=b`, { headers: bearer(key) });
  expect([response.status, await response.json()]).toEqual([200, { path: '/api/v1/conversations?a=b' }]);
  expect(hosts).toEqual(['localhost']);
  expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(1);
  const { body } = await callAdmin(gateway, '/status');
  expect(body.store.up).toBe(true);
});

test('a socket on which nothing listens is an upstream that cannot be reached: no unit is used', async () => {
  const { gateway, server, backend } = await start();
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  await new Promise((resolve) => server.close(resolve));
  const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  expect(response.status).toBe(503);
  expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(0);
  const { body } = await callAdmin(gateway, '/status');
  expect(JSON.stringify(body.upstreams)).toContain(`unix:${backend}`);
});
