/**
 * A customer lets its webhook respond with an endless stream of `103 Early Hints`, or of empty lines. Only headers and
 * the body were bounded, so the gateway parsed the stream for all the 15 seconds of a delivery: a few such receivers, and
 * the requests of all customers took seconds.
 */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createDeliver } from '../../src/customers/notices/delivery.ts';
import { drip, flood, startFloodingServer } from '../support/flooding-server.ts';

/** Longer than a test may take: a delivery that ends only then fails the test. */
const NEVER_MS = 600_000;
/** More than the buffers of two sockets hold. */
const MAX_SENT_BYTES = 32 * 1024 * 1024;

async function deliverTo(respond: (socket: Socket) => void, timeoutMs = NEVER_MS) {
  const server = await startFloodingServer(respond);
  const deliver = createDeliver({ clock: systemClock, closing: new AbortController().signal, timeoutMs });
  const endpoint = { url: `${server.origin}/`, secrets: [new Uint8Array(32)], allowPrivate: true };
  const outcome = await deliver(endpoint, { id: 'msg_1', body: '{}' });
  return { outcome, sentBytes: await server.sentBytes() };
}

test.each([
  ['103 Early Hints', '', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'more than 10 interim responses'],
  ['100 Continue', '', 'HTTP/1.1 100 Continue\r\n\r\n', 'more than 10 interim responses'],
  ['empty lines', '', '\r\n', 'more than 65536 bytes'],
  ['a header', 'HTTP/1.1 200 OK\r\nx: ', 'y', 'HPE_HEADER_OVERFLOW'],
  ['headers', 'HTTP/1.1 200 OK\r\n', 'x: y\r\n', 'HPE_HEADER_OVERFLOW'],
])('a receiver that sends %s without end is left at once', async (_, head, text, reason) => {
  const { outcome, sentBytes } = await deliverTo(flood(head, text));
  expect(outcome).toEqual({ kind: 'failed', reason: expect.stringContaining(reason), retryAfterMs: null });
  expect(sentBytes).toBeLessThan(MAX_SENT_BYTES);
});

test.each([
  ['a body', 'HTTP/1.1 200 OK\r\n\r\n', 'x'],
  ['chunks of a byte', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n'],
  ['trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n', 'x: y\r\n'],
])(
  'a receiver that responds and then sends %s without end is left at once, and its status counts',
  async (_, head, text) => {
    const { outcome, sentBytes } = await deliverTo(flood(head, text));
    expect(outcome).toEqual({ kind: 'delivered' });
    expect(sentBytes).toBeLessThan(MAX_SENT_BYTES);
  },
);

test.each([
  ['103 Early Hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['an empty line', '\r\n'],
  ['a byte', 'H'],
])('a receiver that sends %s now and then is left at the deadline', async (_, text) => {
  const { outcome } = await deliverTo(drip(text), 450);
  expect(outcome).toMatchObject({ kind: 'failed' });
});

test('a few interim responses before the response do no harm', async () => {
  const { outcome } = await deliverTo((socket) => {
    socket.end(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(5)}HTTP/1.1 204 No Content\r\n\r\n`);
  });
  expect(outcome).toEqual({ kind: 'delivered' });
});
