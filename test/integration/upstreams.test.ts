/** What becomes of quota, metrics and /status when upstreams fail. */
import { createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem, type TestSystem } from '../support/system.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

/** Kept for longer than a busy machine takes for a test. */
const OK = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 2\r\n\r\nok';

function local(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function startBefore(ports: readonly number[], upstream: Record<string, unknown> = {}): Promise<TestSystem> {
  return startSystem({ config: { upstream: { urls: ports.map(local), ...upstream } } });
}

async function read({ gateway, key }: TestSystem, method = 'GET') {
  const answer = await fetch(`${gateway.public}/v1/conversations`, { method, headers: bearer(key) });
  const text = await answer.text();
  return { status: answer.status, code: answer.ok || text === '' ? undefined : JSON.parse(text).code, answer };
}

async function used({ gateway }: TestSystem): Promise<number> {
  return (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used;
}

test('when a kept connection closes while it is reused, the backend gets the request again, and it is counted once', async () => {
  const times = new Map<Socket, number>();
  const upstream = await startRawUpstream((socket) => {
    const asked = (times.get(socket) ?? 0) + 1;
    times.set(socket, asked);
    if (asked === 1) socket.write(OK);
    else socket.resetAndDestroy();
  });
  const system = await startBefore([upstream.port]);
  for (let i = 0; i < 5; i++) expect((await read(system)).status).toBe(200);
  // Each connection serves one and resets the second, which goes out once more on the next.
  expect(upstream.heads).toHaveLength(9);
  await expect.poll(() => used(system)).toBe(5);
  expect(await readMetric(system.gateway, 'tollgate_upstream_retries_total')).toEqual({
    'backend="default",result="sent"': 4,
  });
});

test('a request that is reset twice is counted once, and gets 502 with the quota headers', async () => {
  const upstream = await startRawUpstream((socket) => socket.resetAndDestroy());
  const system = await startBefore([upstream.port]);
  const { status, code, answer } = await read(system);
  expect([status, code, answer.headers.get('x-ratelimit-remaining')]).toEqual([502, 'bad_gateway', '999']);
  expect(upstream.heads).toHaveLength(2);
  await expect.poll(() => used(system)).toBe(1);
});

test('a request that every upstream refuses costs no unit, nor does one that is not tried', async () => {
  const ports = [await freePort(), await freePort()];
  const system = await startBefore(ports);
  for (let i = 0; i < 8; i++) {
    const { status, code, answer } = await read(system, i % 2 === 0 ? 'GET' : 'HEAD');
    expect([status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    if (i % 2 === 0) expect(code).toBe('upstream_unavailable');
  }
  await expect.poll(() => used(system)).toBe(0);
  expect((await callAdmin(system.gateway, '/status')).body.upstreams).toEqual(
    ports.map((port) => ({
      backend: 'default',
      url: local(port),
      up: false,
      reason: 'unreachable',
      fault: `connect ECONNREFUSED 127.0.0.1:${port}`,
    })),
  );
  const ready = await fetch(`${system.gateway.ops}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([200, { status: 'degraded', reasons: ['upstream_down'] }]);
  expect(await readMetric(system.gateway, 'tollgate_upstream_up')).toEqual({
    [`backend="default",upstream="${local(ports[0] ?? 0)}"`]: 0,
    [`backend="default",upstream="${local(ports[1] ?? 0)}"`]: 0,
  });
});

test('an upstream that goes down and comes back is logged once each, and shown by the metric', async () => {
  const port = await freePort();
  const strong = await startRawUpstream((socket) => socket.write(OK));
  const system = await startBefore([port, strong.port], { balance: 'round_robin' });
  const { gateway } = system;
  const logged = () => gateway.logs.filter(({ msg }) => String(msg).startsWith('an upstream is'));
  for (let i = 0; i < 10; i++) expect((await read(system)).status).toBe(200);
  expect(logged()).toMatchObject([{ level: 'error', upstream: local(port), reason: 'unreachable' }]);
  expect(await readMetric(gateway, 'tollgate_upstream_up')).toEqual({
    [`backend="default",upstream="${local(port)}"`]: 0,
    [`backend="default",upstream="${local(strong.port)}"`]: 1,
  });

  const server = createServer((socket) => socket.on('error', () => {}).on('data', () => socket.write(OK)));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await expect
    .poll(() => readMetric(gateway, 'tollgate_upstream_up'), { timeout: 20_000 })
    .toMatchObject({ [`backend="default",upstream="${local(port)}"`]: 1 });
  expect(logged().map(({ msg }) => msg)).toEqual(['an upstream is out of service', 'an upstream is back in service']);
  await expect.poll(() => used(system)).toBe(10);
});

test('a configured health check has no credentials, and uses no unit', async () => {
  const checks: string[] = [];
  const upstream = await startRawUpstream((socket, head) => {
    if (head.includes('/healthz')) checks.push(head);
    socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
  });
  const system = await startBefore([upstream.port], {
    credentials: 'replace',
    authorization: 'Basic c2VjcmV0',
    health_check: { path: '/healthz', interval_ms: 50 },
  });
  await expect
    .poll(async () => (await callAdmin(system.gateway, '/status')).body.upstreams, { timeout: 20_000 })
    .toEqual([
      { backend: 'default', url: local(upstream.port), up: false, reason: 'health_check', fault: 'status 404' },
    ]);
  expect(await read(system)).toMatchObject({ status: 503, code: 'upstream_unavailable' });
  expect(checks[0]).toBe(
    `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${upstream.port}\r\nUser-Agent: tollgate-health-check\r\nConnection: close`,
  );
  expect(await used(system)).toBe(0);
});
