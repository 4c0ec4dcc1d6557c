/**
 * Requests that may have an effect are written to one connection only, whatever happens to it. The backends count
 * requests that arrived completely, and connections on which only the beginning of one arrived.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { startBackend } from '../support/backend.ts';
import { shareOfNumbers, shareOfRuns } from '../support/share-of-runs.ts';
import { type Arrival, OK, respond, startCountingBackend, twice } from './counting-backend.ts';
import { createClient } from './single-try-client.ts';
import { ANY_ROUTE, startBodySystem } from './support.ts';

const MANY = 1_000_000;
const CUSTOMER = { id: 'acme', plan: 'starter', requests_per_hour: MANY };

async function startWith(urls: readonly string[], config: Record<string, Record<string, unknown>> = {}) {
  const upstream = { urls, connect_timeout_ms: 5_000, ...config.upstream };
  // Nothing is ever sent to another backend.
  const other = await startBackend();
  onTestFinished(async () => {
    await other.close();
    expect(other.seen).toEqual([]);
  });
  const upstreams = { other: { urls: [other.url] } };
  const routes = [ANY_ROUTE, { path: '/other', methods: ['GET'], upstream: 'other' }] as never;
  const system = await startBodySystem({ customer: CUSTOMER, config: { routes, upstreams, ...config, upstream } });
  return { ...system, client: createClient(system.gateway.public, system.key) };
}

/** Passes bytes on to `port`, and once {@link limit} was called, only so many more before it resets both sides. */
async function startCuttingProxy(port: number) {
  let left = Number.POSITIVE_INFINITY;
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
    const end = () => {
      left = Number.POSITIVE_INFINITY;
      client.resetAndDestroy();
      // The backend gets what was passed on before the reset.
      upstream.end();
    };
    for (const socket of [client, upstream]) socket.on('error', () => {}).once('close', () => socket.destroy());
    if (left === 0) return end();
    client.on('data', (bytes: Buffer) => {
      upstream.write(bytes.subarray(0, left));
      if (bytes.length >= left) end();
      else left -= bytes.length;
    });
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    limit(bytes: number) {
      left = bytes;
    },
  };
}

describe('a reset at any byte of head or body', () => {
  const BODY = 'the body of a request';

  it.each(['a new connection', 'a kept connection'])('sends no POST to a second connection: %s', async (which) => {
    let length = 0;
    const backend = await startCountingBackend((arrival) => {
      if (arrival.isComplete) length = arrival.bytes;
      respond(arrival);
    });
    const proxy = await startCuttingProxy(backend.port);
    const { client } = await startWith([proxy.url]);
    expect(await client.send('POST', BODY)).toBe(200);
    for (const bytes of shareOfNumbers(length)) {
      if (which === 'a kept connection') expect(await client.send('POST', BODY)).toBe(200);
      proxy.limit(bytes);
      expect(await client.send('POST', BODY), `reset after ${bytes} bytes`).toBe(502);
    }
    await expect.poll(() => backend.begun).toBe(client.sent);
    await expect.poll(() => backend.connections.size).toBe(0);
    expect(backend.begun).toBe(client.sent);
    expect(twice(backend)).toEqual([]);
  });

  it('sends no upload to a second connection: while its body streams', async () => {
    let resetAt = 0;
    const backend = await startCountingBackend(({ socket, bytes }) => {
      if (bytes >= resetAt) socket.resetAndDestroy();
    });
    const { open } = await startWith([backend.url]);
    const BUFFERED = 16_384;
    const uploads = shareOfRuns(40, 10);
    for (let step = 0; step < uploads; step++) {
      const path = `/api/streamed-${step}`;
      const upload = open(`PUT ${path}`, `Content-Length: ${BUFFERED + 1_000}`);
      upload.send(Buffer.alloc(BUFFERED));
      resetAt = Number.POSITIVE_INFINITY;
      await expect.poll(() => backend.arrivals.get(path), { interval: 1 }).toBe(1);
      resetAt = BUFFERED + 200 + step;
      const sending = setInterval(() => upload.send(Buffer.alloc(50)), 1);
      expect(await upload.untilEnd()).toMatch(/^HTTP\/1\.1 502 /);
      clearInterval(sending);
    }
    expect(backend.begun).toBe(uploads);
    expect(twice(backend)).toEqual([]);
  });
});

describe('a kept connection that closes just as a request is written', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['by an orderly close', (socket) => socket.end()],
    ['by a reset', (socket) => socket.resetAndDestroy()],
  ])('sends no request to a second connection: %s', async (_how, close) => {
    const closing = ({ socket, isComplete }: Arrival) => {
      if (!isComplete) return;
      socket.write(OK);
      const waitMs = Math.random();
      setTimeout(close, waitMs < 0.3 ? 1 : 10 * waitMs, socket);
    };
    const backend = await startCountingBackend(closing);
    const { client } = await startWith([backend.url]);
    const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
    const statuses = new Set<number>();
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let i = 0; i < shareOfRuns(60, 15); i++) {
          const method = methods[i % methods.length] ?? 'POST';
          statuses.add(await client.send(method, method === 'DELETE' ? undefined : 'a body'));
          await pause(5 * Math.random());
        }
      }),
    );
    expect([...statuses].filter((status) => status !== 200 && status !== 502)).toEqual([]);
    expect(backend.begun).toBeLessThanOrEqual(client.sent);
    expect(twice(backend)).toEqual([]);
  });
});

describe('with several upstreams', () => {
  it('a POST that one of them closes after the head goes to no other, even when that one is ejected', async () => {
    const closing = ({ socket, head }: Arrival) => void (head !== '' && socket.destroy());
    const backends = [await startCountingBackend(closing), await startCountingBackend(respond)] as const;
    const { client, gateway } = await startWith(backends.map(({ url }) => url));
    for (let i = 0; i < 30; i++) expect([200, 502]).toContain(await client.send('POST', 'a body'));
    const status = await (await fetch(`${gateway.ops}/metrics`)).text();
    expect(status).toMatch(/tollgate_upstream_up\{[^}]*\} 0/);
    expect(backends[0].begun + backends[1].begun).toBe(30);
    expect(backends[0].begun).toBeGreaterThanOrEqual(5);
    expect(twice(...backends)).toEqual([]);
  });

  it('a POST whose connection is refused goes to another', async () => {
    const backend = await startCountingBackend(respond);
    const { client } = await startWith([`http://127.0.0.1:${await freePort()}`, backend.url]);
    for (let i = 0; i < 20; i++) expect(await client.send('POST', 'a body')).toBe(200);
    expect(backend.begun).toBe(20);
  });
});

it.each([
  ['OPTIONS', 'a body', 1],
  ['OPTIONS', undefined, 2],
  ['GET', undefined, 2],
  ['DELETE', undefined, 1],
])('%s with the body %s is written to a backend that closes its connections: %d times', async (method, body, times) => {
  const backend = await startCountingBackend(({ socket, isComplete }) => void (isComplete && socket.destroy()));
  const { client } = await startWith([backend.url]);
  expect(await client.send(method, body)).toBe(502);
  expect(backend.begun).toBe(times);
});
