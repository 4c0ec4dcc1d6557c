/** A plan's `max_concurrent`: what it refuses, and that no way for a request to end keeps its place. */
import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

const MAX_CONCURRENT = 3;
const START_PLANS = { starter: { requests_per_hour: 60, max_concurrent: MAX_CONCURRENT } };

/** A backend whose last path segment says what becomes of the response. */
function fickleBackend() {
  const held = new Set<ServerResponse>();
  const answer: RequestListener = (req, res) => {
    switch (req.url?.split('/').at(-1)) {
      case 'hold':
        held.add(res);
        res.once('close', () => held.delete(res));
        return;
      case 'begin':
        res.writeHead(200).write('the beginning');
        return;
      case 'reset':
        return res.socket?.destroy();
      case 'truncate':
        res.writeHead(200, { 'Content-Length': 10 }).write('short', () => res.socket?.destroy());
        return;
      case 'unmodified':
        return res.writeHead(304).end();
      default:
        res.writeHead(200).write('some ');
        return setImmediate(() => res.end('content'));
    }
  };
  return { held, answer };
}

const start = (config: Record<string, Record<string, unknown>> = {}, answer?: RequestListener) =>
  startSystem({ config: { plans: START_PLANS, ...config }, ...(answer && { answer }) });

function head(key: string, path: string, method = 'GET'): string {
  return `${method} /v1/conversations${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
}

async function open({ gateway }: TestSystem): Promise<Socket> {
  const { hostname, port } = new URL(gateway.public);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {}).resume();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Sends, and resolves when the gateway has sent something back, or closed. */
async function sendAndReceive(socket: Socket, bytes: string): Promise<void> {
  const received = Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write(bytes);
  await received;
}

test('requests beyond max_concurrent get 429 too_many_concurrent, use no unit, and are let in when others have ended', async () => {
  const { held, answer } = fickleBackend();
  const system = await start({}, answer);
  const { gateway, key, backend } = system;
  for (let i = 0; i < MAX_CONCURRENT; i++) (await open(system)).write(head(key, '/hold'));
  await expect.poll(() => held.size).toBe(MAX_CONCURRENT);

  const headers = bearer(key);
  const refused = await fetch(`${gateway.public}/v1/conversations`, { headers });
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('ratelimit')).toBeNull();
  expect(await refused.json()).toMatchObject({
    type: 'urn:tollgate:problem:too-many-concurrent',
    status: 429,
    code: 'too_many_concurrent',
  });
  const usage = await fetch(`${gateway.public}/v1/usage`, { headers });
  expect(await usage.json()).toMatchObject({ used: MAX_CONCURRENT });
  expect(await readMetric(gateway, 'tollgate_quota_decisions_total')).toMatchObject({
    'plan="starter",policy="concurrent",outcome="denied",mode="lease"': 1,
  });
  const other = await createCustomerWithKey(gateway, { id: 'globex', plan: 'starter' });
  expect((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(other) })).status).toBe(200);

  for (const res of [...held].slice(1)) res.end();
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
  for (let i = 0; i < 2; i++) (await open(system)).write(head(key, '/hold'));
  await expect.poll(() => held.size).toBe(MAX_CONCURRENT);
  expect((await fetch(`${gateway.public}/v1/conversations`, { headers })).status).toBe(429);
  expect(backend.seen).toHaveLength(MAX_CONCURRENT + 3);
});

/** Ways in which a request can end. Each resolves when the client has done its part. */
const ENDINGS: Readonly<Record<string, (socket: Socket, key: string) => unknown>> = {
  'complete response': (socket, key) => sendAndReceive(socket, head(key, '')),
  'complete response to HEAD': (socket, key) => sendAndReceive(socket, head(key, '', 'HEAD')),
  'no content': (socket, key) => sendAndReceive(socket, head(key, '/unmodified')),
  'backend resets the connection, twice': (socket, key) => sendAndReceive(socket, head(key, '/reset')),
  'backend truncates the response': (socket, key) => sendAndReceive(socket, head(key, '/truncate')),
  'backend is late': (socket, key) => sendAndReceive(socket, head(key, '/hold')),
  'client leaves at once': (socket, key) => socket.write(head(key, '/hold'), () => socket.destroy()),
  'client resets the connection at once': (socket, key) =>
    socket.write(head(key, '/hold'), () => socket.resetAndDestroy()),
  'client leaves while others wait for a connection': (socket, key) => {
    socket.write(head(key, '/hold'));
    setTimeout(() => socket.destroy(), 20);
  },
  'client leaves in the middle of the response': async (socket, key) => {
    await sendAndReceive(socket, head(key, '/begin'));
    socket.destroy();
  },
  'client leaves in the middle of the next request': async (socket, key) => {
    await sendAndReceive(socket, head(key, ''));
    socket.write(head(key, '/hold').slice(0, 40), () => socket.destroy());
  },
  'client pipelines two requests and leaves': (socket, key) =>
    socket.write(head(key, '') + head(key, '/hold'), () => socket.destroy()),
};

test('however requests end, their places are free again', async () => {
  const { answer } = fickleBackend();
  // Fewer connections than places: some requests wait for one. The hourly quota refuses some, too.
  const upstream = { max_connections: 2, max_connections_per_customer: 2, response_timeout_ms: 150 };
  const system = await start({ upstream }, answer);
  const { gateway, key } = system;
  const names = Object.keys(ENDINGS);
  const property = fc.asyncProperty(
    fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 12 }),
    async (endings) => {
      await Promise.all(endings.map(async (name) => ENDINGS[name]?.(await open(system), key)));
      await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
    },
  );
  // Each of them alone, and too many at once, in any case.
  const examples: [string[]][] = [...names.map((name): [string[]] => [[name]]), [Array(6).fill('backend is late')]];
  await fc.assert(property, { numRuns: examples.length + 8, examples });
  await callAdmin(gateway, '/admin/v1/customers/acme/usage', { method: 'DELETE' });

  const codes = new Set(gateway.logs.map(({ code }) => code));
  expect([...codes]).toEqual(expect.arrayContaining(['too_many_concurrent', 'bad_gateway', 'gateway_timeout']));
  const sockets = await Promise.all(Array.from({ length: MAX_CONCURRENT }, () => open(system)));
  for (const socket of sockets) socket.write(head(key, '/begin'));
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': MAX_CONCURRENT });
  const before = gateway.logs.length;
  expect((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status).toBe(429);
  expect(gateway.logs.slice(before).map(({ code }) => code)).toContain('too_many_concurrent');
});
