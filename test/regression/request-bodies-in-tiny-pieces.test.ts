/**
 * A client sent a body in chunks of a byte. The gateway kept a buffer of over 100 bytes for each, and Node.js did the same
 * while the gateway did not read: 150 uploads of 16 KB delayed other customers by 12 seconds, 232 ended the process, and a
 * megabyte took 500 MB and 2.6 s of CPU time.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { JoinedBytes } from '../../src/base/joined-bytes.ts';
import { pauseReading } from '../../src/base/pause-reading.ts';
import { joinUnreadBody } from '../../src/http/listener/socket-control.ts';
import { RequestBody } from '../../src/upstream/request-body.ts';
import { openClient, sha256, startBodySystem } from '../bodies/support.ts';
import { listen } from '../upstream/support/upstreams.ts';

const CHUNKED = 'Transfer-Encoding: chunked';

function inChunks(content: string, size: number, extension = ''): string {
  let text = '';
  for (let at = 0; at < content.length; at += size) {
    const part = content.slice(at, at + size);
    text += `${part.length.toString(16)}${extension}\r\n${part}\r\n`;
  }
  return text;
}

it('pieces of any size are joined in order, into few parts', () => {
  const pieces = Array.from({ length: 3_000 }, (_, i) => Buffer.alloc(i % 1_000 === 999 ? 5_000 : i % 3, i));
  const joined = new JoinedBytes();
  for (const piece of pieces) joined.add(piece);
  const whole = Buffer.concat(pieces);
  expect(joined.length).toBe(whole.length);
  const parts = joined.take();
  expect(Buffer.concat(parts).equals(whole)).toBe(true);
  expect(parts.length).toBeLessThan(10);
  expect([joined.length, joined.take()]).toEqual([0, []]);
});

describe('framing that costs over 16 KiB more than the content is refused', () => {
  it.each([
    ['chunks of a byte', 'x'.repeat(5_000), 1, ''],
    ['chunks of four bytes', 'x'.repeat(100_000), 4, ''],
    ['chunk extensions', 'x'.repeat(40_000), 10, `;a=${'b'.repeat(60)}`],
  ])('%s', async (_, content, size, extension) => {
    const { open } = await startBodySystem();
    const client = open('POST /api/a', CHUNKED);
    // In many small writes, so that the gateway reads it in pieces too.
    const body = inChunks(content, size, extension);
    for (let at = 0; at < body.length; at += 8_000) client.send(body.slice(at, at + 8_000));
    expect(await client.untilEnd()).toMatch(/^HTTP\/1\.1 400 .*\r\nConnection: close\r\n.*"code":"bad_request"/is);
  });

  it('chunks of a byte that arrive with the head, in one read', async () => {
    const { gateway, key } = await startBodySystem();
    const socket = connect(Number(new URL(gateway.public).port), '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1').on('data', (text) => {
      received += text;
    });
    const head = `POST /api/a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${CHUNKED}\r\n\r\n`;
    socket.write(`${head}${inChunks('x'.repeat(8_000), 1)}0\r\n\r\n`);
    await once(socket, 'close');
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('what is not framing does not count', () => {
  it.each([
    ['chunks of five bytes', 'abcde'.repeat(20_000), 5],
    ['chunks of ten bytes', 'abcdefghij'.repeat(20_000), 10],
    ['few chunks of a byte', 'x'.repeat(3_000), 1],
  ])('%s pass', async (_, content, size) => {
    const { open } = await startBodySystem();
    const client = open('POST /api/a', CHUNKED);
    client.send(`${inChunks(content, size)}0\r\n\r\n`);
    expect(await client.until(/"sha256":"/)).toContain(sha256(Buffer.from(content)));
  });

  it('the content of a chunk that arrives byte by byte', async () => {
    const { open } = await startBodySystem();
    const client = open('POST /api/a', CHUNKED);
    client.send('1f40\r\n');
    for (let i = 0; i < 8_000; i++) {
      client.send('x');
      if (i % 4 === 0) await new Promise(setImmediate);
    }
    client.send('\r\n0\r\n\r\n');
    expect(await client.until(/"sha256":"/)).toContain(sha256(Buffer.alloc(8_000, 'x')));
  });

  it('earlier and later requests on the connection', async () => {
    const { gateway, key } = await startBodySystem();
    const head = `GET /api/a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}`;
    const get = `${head}\r\nX-Pad: ${'a'.repeat(4_000)}\r\n\r\n`;
    const post = openClient(gateway.public, key, 'POST /api/first', CHUNKED);
    post.send(`${inChunks('x'.repeat(2_000), 1)}0\r\n\r\n`);
    post.send(get.repeat(8));
    post.send(get.replace('GET', 'POST').replace('\r\n\r\n', `\r\n${CHUNKED}\r\n\r\n`));
    post.send(`${inChunks('y'.repeat(2_000), 1)}0\r\n\r\n${get.repeat(8)}`);
    await expect.poll(() => post.received.match(/HTTP\/1\.1 200 /g)?.length, { timeout: 20_000 }).toBe(18);
    const { received } = post;
    expect(received).toContain(sha256(Buffer.alloc(2_000, 'x')));
    expect(received).toContain(sha256(Buffer.alloc(2_000, 'y')));
  });
});

it('pieces that arrive while the backend does not read are passed on in few parts', async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  const port = await listen(server);
  const requested = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${CHUNKED}\r\n\r\n`);
  const [req] = await requested;
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const deadlines = { watch() {}, unwatch() {} };
  const body = new RequestBody(req, undefined, { maxBytes: 10_000, stallTimeoutMs: 1, deadlines, clock });
  const parts: Buffer[] = [];
  body.attach({ onBodyBytes: (bytes) => parts.push(bytes), onBodyEnd() {}, onBodyFault() {} });
  body.flow();
  body.pause();
  socket.write(inChunks('x'.repeat(3_000), 1));
  await expect
    .poll(() => {
      body.onDeadline();
      return body.receivedBytes;
    })
    .toBe(3_000);
  body.resume();
  expect(Buffer.concat(parts).toString()).toBe('x'.repeat(3_000));
  expect(parts.length).toBeLessThan(5);
});

it('the body of a pipelined request that waits is kept in few parts', async () => {
  const server = createServer((req) => {
    joinUnreadBody(req);
    pauseReading(req.socket);
  });
  onTestFinished(() => void server.close());
  const port = await listen(server);
  const requested = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${CHUNKED}\r\n\r\n${inChunks('x'.repeat(1_000), 1)}0\r\n\r\n`);
  const [req] = await requested;
  await expect.poll(() => req.readableLength).toBe(1_000);
  const parts: Buffer[] = await req.toArray();
  expect(parts.length).toBeLessThan(5);
  expect(Buffer.concat(parts).toString()).toBe('x'.repeat(1_000));
});
