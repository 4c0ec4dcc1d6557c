import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { readMetric } from '../support/metrics.ts';
import { type Digest, sha256, startBodySystem } from './support.ts';

const SIZES = [1, 1_000, 16_383, 16_384, 16_385, 65_536, 1_000_000, 20_000_000];

describe('the backend gets exactly the bytes of the body', () => {
  it.each(SIZES)('%i bytes with Content-Length, and as chunks', async (size) => {
    const { gateway, headers } = await startBodySystem();
    const body = randomBytes(size);
    const url = `${gateway.public}/api/things`;
    const announced = await fetch(url, { method: 'POST', headers, body });
    const first = (await announced.json()) as Digest;
    expect(first).toMatchObject({ method: 'POST', bytes: size, sha256: sha256(body) });
    expect(first.headers).toMatchObject({ 'content-length': String(size) });
    expect(first.headers).not.toHaveProperty('transfer-encoding');

    const streamed = await fetch(url, { method: 'PUT', headers, body: Readable.from(pieces(body)), duplex: 'half' });
    const second = (await streamed.json()) as Digest;
    expect(second).toMatchObject({ method: 'PUT', bytes: size, sha256: sha256(body) });
    expect(second.headers).toMatchObject({ 'transfer-encoding': 'chunked' });
    expect(second.headers).not.toHaveProperty('content-length');
  });

  it('a connection carries one upload after the other', async () => {
    const { open, headers } = await startBodySystem();
    const client = open('POST /api/a', 'Content-Length: 3');
    client.send('abc');
    await client.until(/"bytes":3/);
    const head = `PUT /api/b HTTP/1.1\r\nHost: a\r\nAuthorization: ${headers.Authorization}\r\n`;
    client.send(`${head}Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n`);
    await client.until(/"bytes":4/);
  });
});

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += 7_777) yield body.subarray(at, at + 7_777);
}

it('a request without a body is forwarded without one, and Content-Length: 0 as it is', async () => {
  const { open, backend } = await startBodySystem();
  await open('DELETE /api/a').until(/"bytes":0/);
  await open('POST /api/a', 'Content-Length: 0').until(/"bytes":0/);
  expect(backend.seen[0]?.headers).not.toHaveProperty('content-length');
  expect(backend.seen[0]?.headers).not.toHaveProperty('transfer-encoding');
  expect(backend.seen[1]?.headers).toMatchObject({ 'content-length': '0' });
});

it('Content-Type and Content-Encoding pass unchanged; Expect, TE, Trailer and trailers do not', async () => {
  const { open, backend } = await startBodySystem();
  const client = open(
    'POST /api/a',
    'Transfer-Encoding: chunked',
    'Content-Type: text/x; charset=a',
    'Content-Encoding: br',
    'TE: trailers',
    'Trailer: X-Sum',
    'Expect: 100-continue',
  );
  await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
  client.send('3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n');
  await client.until(/"bytes":3/);
  const { headers, rawHeaders } = backend.seen[0] ?? { headers: {}, rawHeaders: [] };
  expect(headers).toMatchObject({ 'content-type': 'text/x; charset=a', 'content-encoding': 'br' });
  expect(rawHeaders.join()).not.toMatch(/expect|trailer|(^|,)te,|x-sum/i);
});

describe('Expect: 100-continue', () => {
  it('100 is sent once the quota admits the request, and the connection is kept', async () => {
    const { open } = await startBodySystem();
    const client = open('POST /api/a', 'Content-Length: 3', 'Expect: 100-continue');
    expect(await client.until(/\r\n\r\n/)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    client.send('abc');
    expect(await client.until(/"bytes":3/)).not.toMatch(/connection: close/i);
  });

  it('a refusal is final: no 100, and the body is not read', async () => {
    const { open, backend } = await startBodySystem({
      customer: { id: 'acme', plan: 'starter', requests_per_hour: 1 },
    });
    await open('GET /api/a').until(/"bytes":0/);
    const client = open('POST /api/a', 'Content-Length: 3', 'Expect: 100-continue');
    const received = await client.untilEnd();
    expect(received).toMatch(/^HTTP\/1\.1 429 .*\r\nConnection: close\r\n.*"code":"quota_exceeded"/s);
    expect(backend.seen).toHaveLength(1);
  });

  it('a body that comes after the admission has lapsed is admitted anew, and counted once', async () => {
    const { open, gateway, headers } = await startBodySystem({
      customer: { id: 'acme', plan: 'starter', requests_per_hour: 1 },
    });
    const client = open('POST /api/a', 'Content-Length: 3', 'Expect: 100-continue');
    await client.until(/100 Continue/);
    await new Promise((resolve) => setTimeout(resolve, 2_500)); // longer than any admission lasts
    client.send('abc');
    await client.until(/"bytes":3/);
    const usage = await fetch(`${gateway.public}/api/v1/usage`, { headers });
    expect(await usage.json()).toMatchObject({ used: 1 });
  });

  it('any other expectation is 417', async () => {
    const { open, backend } = await startBodySystem();
    const received = await open('POST /api/a', 'Content-Length: 3', 'Expect: 200-ok').untilEnd();
    expect(received).toMatch(/^HTTP\/1\.1 417 .*"code":"expectation_failed"/s);
    expect(backend.seen).toHaveLength(0);
  });
});

describe('a body that is longer than allowed is 413', () => {
  const config = { limits: { body_bytes: 100_000 }, routes: [{ path: '/api/{rest...}', methods: ['POST'] }] as never };

  it('by Content-Length before the key is looked up, and free', async () => {
    const { open, backend, gateway, headers } = await startBodySystem({ config });
    const client = open('POST /api/a', 'Content-Length: 100001', 'Authorization: Bearer no-key-that-exists');
    expect(await client.untilEnd()).toMatch(/^HTTP\/1\.1 413 .*\r\nConnection: close\r\n.*"code":"body_too_large"/s);
    const usage = await fetch(`${gateway.public}/api/v1/usage`, { headers });
    expect(await usage.json()).toMatchObject({ used: 0 });
    expect(backend.seen).toHaveLength(0);
  });

  it('by its chunks when they pass the limit, and the request to the backend is aborted', async () => {
    const aborted = Promise.withResolvers<number>();
    const { open } = await startBodySystem({
      config,
      answer: (req) => {
        let bytes = 0;
        req.on('data', (chunk) => {
          bytes += chunk.length;
        });
        req.on('error', () => aborted.resolve(bytes));
      },
    });
    const client = open('POST /api/a', 'Transfer-Encoding: chunked');
    const chunk = `ffff\r\n${'a'.repeat(0xffff)}\r\n`;
    client.send(chunk);
    client.send(chunk);
    const received = await client.untilEnd();
    expect(received).toMatch(/^HTTP\/1\.1 413 .*\r\nConnection: close\r\n.*"code":"body_too_large"/s);
    expect(await aborted.promise).toBeLessThanOrEqual(100_000);
  });
});

describe('a body that does not arrive is 408', () => {
  it.each([
    ['before 16 KiB', 1, 0],
    ['after 16 KiB', 20_000, 1],
  ])('no byte for body_stall_timeout_ms, %s', async (_when, sent, forwarded) => {
    const { open, backend } = await startBodySystem({ config: { limits: { body_stall_timeout_ms: 300 } } });
    const client = open('POST /api/a', 'Content-Length: 30000');
    client.send('a'.repeat(sent));
    const received = await client.untilEnd();
    expect(received).toMatch(/^HTTP\/1\.1 408 .*\r\nConnection: close\r\n.*"code":"request_timeout"/s);
    expect(backend.seen).toHaveLength(forwarded);
  });

  it('the first 16 KiB within request_timeout_ms, however steadily they arrive', async () => {
    const { open, backend } = await startBodySystem({
      config: { limits: { request_timeout_ms: 1000, headers_timeout_ms: 1000 } },
    });
    const client = open('POST /api/a', 'Content-Length: 30000');
    const sending = setInterval(() => client.send('a'), 20);
    const received = await client.untilEnd();
    clearInterval(sending);
    expect(received).toMatch(/^HTTP\/1\.1 408 /);
    expect(backend.seen).toHaveLength(0);
  });
});

it('an early response reaches a client that is still sending, and what it sends later is discarded', async () => {
  const { open } = await startBodySystem({
    answer: (_req, res) => res.writeHead(403, { Connection: 'close' }).end('no'),
  });
  const client = open('POST /api/a', 'Content-Length: 50000000');
  client.send(Buffer.alloc(1_000_000));
  const received = await client.until(/\r\nno\r\n/);
  expect(received).toMatch(/^HTTP\/1\.1 403 .*\r\nConnection: close\r\n/s);
  client.send(Buffer.alloc(1_000_000));
  await client.untilEnd();
});

it.each([
  ['a chunk size that is no number', 'zz\r\n'],
  ['a chunk without its end', '1\r\nab\r\n'],
])('a malformed body is 400: %s', async (_what, bytes) => {
  const { open } = await startBodySystem();
  const client = open('POST /api/a', 'Transfer-Encoding: chunked');
  client.send(bytes);
  expect(await client.untilEnd()).toMatch(/^HTTP\/1\.1 400 .*\r\nConnection: close\r\n.*"code":"bad_request"/s);
});

it('a client that ends its side within the body gets 400, and the backend no complete request', async () => {
  const ended = Promise.withResolvers<string>();
  const { open, backend } = await startBodySystem({
    answer: (req) => {
      req.on('end', () => ended.resolve('end'));
      req.on('error', () => ended.resolve('aborted'));
      req.resume();
    },
  });
  const client = open('POST /api/a', 'Content-Length: 30000');
  client.send('a'.repeat(20_000));
  await eventually('the backend gets the beginning', () => backend.seen.length > 0);
  client.socket.end();
  expect(await client.untilEnd()).toMatch(/^HTTP\/1\.1 400 /);
  expect(await ended.promise).toBe('aborted');
});

it('the time that a client takes to send a body is no overhead of the gateway', async () => {
  const { open, gateway } = await startBodySystem();
  const client = open('POST /api/a', 'Content-Length: 2');
  client.send('a');
  await new Promise((resolve) => setTimeout(resolve, 600));
  client.send('b');
  await client.until(/"bytes":2/);
  await eventually('the request is counted', async () => {
    const { 'source="upstream"': seconds = 0 } = await readMetric(gateway, 'tollgate_overhead_seconds_sum');
    return seconds > 0 && seconds < 0.5;
  });
});

it('body bytes are counted in the metrics', async () => {
  const { gateway, headers } = await startBodySystem();
  await (await fetch(`${gateway.public}/api/a`, { method: 'POST', headers, body: 'abc' })).text();
  await eventually('3 bytes are counted', async () => {
    const { '': bytes } = await readMetric(gateway, 'tollgate_request_body_bytes_total');
    return bytes === 3;
  });
});
