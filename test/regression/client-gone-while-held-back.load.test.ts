/**
 * While the backend does not take a body, the gateway did not read from the client, and so did not notice that it had
 * left: until `total_timeout_ms`, 30 seconds, each such client occupied a connection to the backend.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Deadlines } from '../../src/upstream/deadlines.ts';
import { RequestBody } from '../../src/upstream/request-body.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { createCertificate } from '../support/certificates.ts';
import { listen } from '../upstream/support/upstreams.ts';

const LENGTH = 10_000_000;

it.each([
  ['closes', 'http', 60_000, 'destroy'],
  ['closes', 'https', 60_000, 'destroy'],
  ['resets', 'http', 60_000, 'resetAndDestroy'],
  ['resets', 'http', 5_000_000, 'resetAndDestroy'],
] as const)(
  'a client that %s its connection over %s while %i bytes wait is noticed',
  async (_, scheme, bytes, leave) => {
    const isTls = scheme === 'https';
    const server = isTls ? createTlsServer(createCertificate()) : createServer();
    onTestFinished(() => void server.close());
    const port = await listen(server);
    const requested = once(server, 'request') as Promise<[IncomingMessage]>;
    const tcp = connectTcp(port).on('error', () => {});
    const socket = isTls ? connectTls({ socket: tcp, rejectUnauthorized: false }).on('error', () => {}) : tcp;
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${LENGTH}\r\n\r\n`);
    const [req] = await requested;
    const deadlines = new Deadlines(systemClock);
    const options = { maxBytes: LENGTH, stallTimeoutMs: 600_000, deadlines, clock: systemClock };
    const body = new RequestBody(req, LENGTH, options);
    const buffered = body.buffer(Infinity);
    socket.write(Buffer.alloc(bytes));
    expect(await buffered).toBeUndefined();
    const { promise: fault, resolve } = Promise.withResolvers<string>();
    body.attach({ onBodyBytes() {}, onBodyEnd() {}, onBodyFault: resolve });
    body.flow();
    body.pause();
    await expect.poll(() => socket.writableLength === 0 || bytes > 1_000_000).toBe(true);
    const leftAtMs = awakeMs();
    tcp[leave]();
    expect(await fault).toBe('aborted');
    expect(awakeMs() - leftAtMs).toBeLessThan(2_000);
  },
);

it('a client that stays is read a little further, and then no more', async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  const port = await listen(server);
  const requested = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = connectTcp(port).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${LENGTH}\r\n\r\n`);
  const [req] = await requested;
  const clock = { ms: 0, nowMs: () => clock.ms, monotonicMs: () => clock.ms };
  const deadlines = { watch() {}, unwatch() {} };
  const body = new RequestBody(req, LENGTH, { maxBytes: LENGTH, stallTimeoutMs: 30_000, deadlines, clock });
  const buffered = body.buffer(Infinity);
  const content = Buffer.from(Array.from({ length: LENGTH }, (_, i) => (i * 7919) % 251));
  socket.write(content);
  expect(await buffered).toBeUndefined();
  for (let second = 0; second < 10; second++) {
    clock.ms += 1_000;
    body.onDeadline();
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  }
  expect(body.receivedBytes).toBeLessThanOrEqual(16_384 + 3 * 65_536);
  const received: Buffer[] = [];
  const ended = new Promise<void>((resolve) => {
    body.attach({ onBodyBytes: (bytes) => received.push(bytes), onBodyEnd: resolve, onBodyFault() {} });
  });
  body.flow();
  await ended;
  expect(Buffer.concat(received).equals(content)).toBe(true);
});
