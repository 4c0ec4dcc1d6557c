import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { KEY, startGatewayProcess } from '../support/gateway-process.ts';
import { readMetric } from '../support/metrics.ts';
import { listen } from '../upstream/support/upstreams.ts';
import { ANY_ROUTE, openClient, startBodySystem } from './support.ts';

/** Longer than what is buffered, so it is forwarded while it arrives. */
const LONG = 30_000;
const BEGINNING = Buffer.alloc(20_000);
const REST = Buffer.alloc(LONG - BEGINNING.length);

describe('a customer with slow uploads leaves room for others', () => {
  it('those that are forwarded hold at most its share of the connections to the backend', async () => {
    const MAX_CONNECTIONS = 8;
    const { open, backend, gateway } = await startBodySystem({
      config: { upstream: { max_connections: MAX_CONNECTIONS, max_connections_per_customer: 2 } },
    });
    const uploads = Array.from({ length: MAX_CONNECTIONS }, () => open('POST /api/slow', `Content-Length: ${LONG}`));
    for (const upload of uploads) upload.send(BEGINNING);
    await expect.poll(() => backend.seen.length).toBe(MAX_CONNECTIONS / 2);
    const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
    const post = () => fetch(`${gateway.public}/api/a`, { method: 'POST', headers: bearer(other), body: 'abc' });
    const responses = await Promise.all([post(), post()]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(backend.seen.filter(({ url }) => url === '/api/slow')).toHaveLength(MAX_CONNECTIONS / 2);
    for (const upload of uploads) upload.send(REST);
    for (const upload of uploads) await upload.until(/"bytes":30000|"code":"overloaded"/);
  });

  it('those that are buffered take at most a quarter of limits.in_flight, and no connection; further ones get 503', async () => {
    const { open, backend, gateway, headers } = await startBodySystem({ config: { limits: { in_flight: 40 } } });
    const uploads = Array.from({ length: 10 }, () => open('POST /api/slow', 'Content-Length: 3'));
    await expect.poll(async () => await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 10 });
    const refused = await open('POST /api/slow', 'Content-Length: 3').untilEnd();
    expect(refused).toMatch(/^HTTP\/1\.1 503 .*"code":"overloaded"/s);
    expect(backend.seen).toHaveLength(0);

    const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
    const post = await fetch(`${gateway.public}/api/a`, { method: 'POST', headers: bearer(other), body: 'abc' });
    expect(post.status).toBe(200);
    expect((await fetch(`${gateway.public}/api/a`, { headers })).status).toBe(200);
    for (const upload of uploads) upload.send('abc');
    for (const upload of uploads) await upload.until(/"bytes":3/);
    expect((await fetch(`${gateway.public}/api/a`, { method: 'POST', headers, body: 'abc' })).status).toBe(200);
  });
});

it('uploads in progress count for limits.in_flight', async () => {
  const { open } = await startBodySystem({ config: { limits: { in_flight: 4 } } });
  const uploads = Array.from({ length: 4 }, () => open('POST /api/a', `Content-Length: ${LONG}`));
  for (const upload of uploads) upload.send(BEGINNING);
  for (const upload of uploads) expect(upload.received).toBe('');
  await expect.poll(() => open('GET /api/a').until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 503 /);
  for (const upload of uploads) upload.send(REST);
  for (const upload of uploads) await upload.until(/"bytes":30000/);
  await open('GET /api/a').until(/"bytes":0/);
});

it('an upload counts for max_concurrent once it is admitted, and until it ends', async () => {
  const { open } = await startBodySystem({
    config: { plans: { one: { requests_per_hour: 1_000, max_concurrent: 1 } } },
    customer: { id: 'acme', plan: 'one' },
  });
  const upload = open('POST /api/a', 'Content-Length: 3', 'Expect: 100-continue');
  await upload.until(/100 Continue/);
  expect(await open('GET /api/a').until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 429 .*/);
  // Longer than any admission lasts: it is admitted again.
  await pause(2_200);
  upload.send('abc');
  await upload.until(/"bytes":3/);
  await open('GET /api/a').until(/"bytes":0/);
  const gone = open('POST /api/a', 'Content-Length: 3', 'Expect: 100-continue');
  await gone.until(/100 Continue/);
  gone.socket.destroy();
  await expect.poll(() => open('GET /api/a').until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 /);
});

it('SIGTERM lets an upload complete that is in progress, buffered or forwarded, within drain_ms', async () => {
  let begun = 0;
  const gateway = await startGatewayProcess({
    config: { routes: [ANY_ROUTE], shutdown: { not_ready_ms: 1, drain_ms: 10_000 } },
    answer: (req, res) => {
      begun++;
      let bytes = 0;
      req.on('data', (chunk) => {
        bytes += chunk.length;
      });
      req.on('end', () => res.end(`"bytes":${bytes}`));
    },
  });
  const forwarded = openClient(gateway.public, KEY, 'POST /api/a', `Content-Length: ${LONG}`);
  forwarded.send(BEGINNING);
  const buffered = openClient(gateway.public, KEY, 'POST /api/a', 'Content-Length: 3');
  buffered.send('a');
  await expect.poll(() => begun).toBe(1);
  await expect.poll(() => gateway.metric('tollgate_inflight_requests')).toBe(2);
  gateway.signal('SIGTERM');
  await expect.poll(() => gateway.output()).toContain('drain');
  await pause(500);
  forwarded.send(REST);
  buffered.send('bc');
  expect(await forwarded.untilEnd()).toMatch(/^HTTP\/1\.1 200 .*connection: close\r\n.*"bytes":30000/is);
  expect(await buffered.untilEnd()).toMatch(/^HTTP\/1\.1 200 .*connection: close\r\n.*"bytes":3\b/is);
  expect((await gateway.finished).status).toBe(0);
});

describe('the timeouts of the response', () => {
  const config = { upstream: { response_timeout_ms: 400, total_timeout_ms: 500 } };

  it('do not cut an upload that takes longer', async () => {
    const { open } = await startBodySystem({ config });
    const upload = open('POST /api/a', `Content-Length: ${LONG}`);
    for (let sent = 0; sent < LONG; sent += LONG / 15) {
      upload.send(Buffer.alloc(LONG / 15));
      await pause(80);
    }
    expect(await upload.until(/"bytes":/)).toMatch(/^HTTP\/1\.1 200 .*"bytes":30000/s);
  });

  it('begin with the last byte of the body', async () => {
    const { open } = await startBodySystem({ config, answer: (req) => void req.resume() });
    const upload = open('POST /api/a', `Content-Length: ${LONG}`);
    upload.send(BEGINNING);
    await pause(800);
    expect(upload.received).toBe('');
    const completeMs = performance.now();
    upload.send(REST);
    expect(await upload.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 504 /);
    expect(performance.now() - completeMs).toBeGreaterThan(380);
  });
});

describe('backpressure', () => {
  const SENT = 60_000_000;

  /** A backend that reads what `read` allows. */
  async function startBefore(accept: (socket: Socket) => void, responseTimeoutMs: number) {
    const port = await listen(createServer({ pauseOnConnect: true, noDelay: true }, accept));
    return startBodySystem({
      config: { upstream: { urls: [`http://127.0.0.1:${port}`], response_timeout_ms: responseTimeoutMs } },
    });
  }

  it('a backend that takes nothing gets no more than the buffers of the kernel hold, and the client 504', async () => {
    const { open } = await startBefore(() => {}, 500);
    const upload = open('POST /api/a', `Content-Length: ${SENT}`);
    const { socket } = upload;
    upload.send(Buffer.alloc(SENT));
    expect(await upload.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 504 /);
    expect(socket.bytesWritten - socket.writableLength).toBeLessThan(SENT / 2);
  });

  it('a backend that reads slowly but steadily is not cut', async () => {
    const TOTAL = 24_000_000;
    /** The rest, which the kernel may hold by the last byte of the body, is read at once: the response is due. */
    const SLOWLY = 10_000_000;
    let read = 0;
    const accept = (socket: Socket) => {
      socket.on('data', (bytes) => {
        read += bytes.length;
        socket.pause();
        setTimeout(() => socket.resume(), read < SLOWLY ? 25 : 0);
        if (read >= TOTAL) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
      socket.resume();
    };
    const { open } = await startBefore(accept, 3_000);
    const startedMs = performance.now();
    const upload = open('POST /api/a', `Content-Length: ${TOTAL}`);
    upload.send(Buffer.alloc(TOTAL));
    expect(await upload.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 /);
    expect(performance.now() - startedMs).toBeGreaterThan(3_000);
  });

  it('a backend that echoes what it receives gets all of the body while the client reads its response', async () => {
    const { open } = await startBodySystem({
      answer: (req: IncomingMessage, res: ServerResponse) => {
        res.writeHead(200, { 'Content-Length': 1_000_000 }).flushHeaders();
        req.pipe(res);
      },
    });
    const upload = open('POST /api/a', 'Content-Length: 1000000');
    for (let round = 1; round <= 10; round++) {
      upload.send('a'.repeat(100_000));
      const end = () => upload.received.split('\r\n\r\n', 2)[1]?.length;
      await expect.poll(end, { interval: 1 }).toBe(100_000 * round);
    }
  });
});
