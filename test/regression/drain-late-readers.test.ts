/**
 * On SIGTERM, clients that were slow to read lost the end of their responses, whatever shutdown.drain_ms said: Node.js
 * takes a connection for idle as soon as the response was handed over to be written, and the gateway let it close such
 * connections. Where the end of the connection is the only framing (HTTP/1.0), the truncated response looked complete,
 * and the access log called it so. A request that arrived in the drain behind another one on its connection was
 * forwarded and charged although the response before it had announced the end of the connection.
 */
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createConnections } from '../../src/http/listener/connections.ts';
import { openSession, request } from '../limits/support.ts';
import { callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

/** Twice what the kernel takes for a client that does not read: the rest waits in the process. */
const LONG = 8 * 1024 * 1024;

const withLength: RequestListener = (_req, res) => {
  res.writeHead(200, { 'Content-Length': LONG }).end('x'.repeat(LONG));
};

const chunked: RequestListener = (_req, res) => {
  res.write('x');
  res.end('x'.repeat(LONG - 1));
};

/** Sends a request and reads nothing. */
async function ask(url: string, bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

/** Reads to the end of the connection. */
async function readRest(socket: Socket) {
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  const end = await new Promise<'closed' | 'reset'>((resolve) => {
    socket.once('end', () => resolve('closed'));
    socket.once('close', () => resolve('reset'));
    if (socket.destroyed) resolve('reset');
  });
  return { contentBytes: received.match(/x/g)?.length ?? 0, isWhole: isWhole(received), end };
}

/** By the framing of HTTP/1.1. */
function isWhole(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n');
  const length = /^content-length: (\d+)/im.exec(received)?.[1];
  if (length === undefined) return received.endsWith('\r\n0\r\n\r\n');
  return received.length - headEnd - 4 === Number(length);
}

async function stopsListening(url: string): Promise<void> {
  await expect
    .poll(() =>
      fetch(url).then(
        () => false,
        () => true,
      ),
    )
    .toBe(true);
}

/** Time for a drain to look for idle connections a few times. */
const severalLooks = () => new Promise((resolve) => setTimeout(resolve, 200));

it.each([
  ['HTTP/1.1 with Content-Length', '1.1', withLength],
  ['HTTP/1.1 with chunks', '1.1', chunked],
  ['HTTP/1.0 until the end of the connection', '1.0', chunked],
] as const)('a drain waits until a late reader has taken a written response: %s', async (_, version, respond) => {
  const connections = createConnections({
    limits: { connections: 10, pipelined: 16, responseStallTimeoutMs: 30_000 },
    clock: systemClock,
    observer: { connection() {}, connectionClosed() {} },
  });
  onTestFinished(() => connections.close());
  const server = createServer();
  const isWritten = Promise.withResolvers<void>();
  connections.serve(server, (req, res) => {
    respond(req, res);
    isWritten.resolve();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const socket = await ask(url, `GET / HTTP/${version}\r\nHost: a\r\n\r\n`);
  await isWritten.promise;
  const drained = connections.finishDrain(20_000);
  await severalLooks();
  const { contentBytes, isWhole, end } = await readRest(socket);
  expect({ contentBytes, end }).toEqual({ contentBytes: LONG, end: 'closed' });
  if (version === '1.1') expect(isWhole).toBe(true);
  await drained;
});

it('a gateway that stops completes every pipelined response for a client that reads late', async () => {
  const count = 150;
  const content = 'x'.repeat(60_000);
  const { gateway, key, backend } = await startSystem({
    answer: (_req, res) => void res.end(content),
    config: { shutdown: { drain_ms: 20_000 } },
  });
  const socket = await ask(gateway.public, request(key).repeat(count));
  // As much is answered as the kernel takes.
  for (let seen = 0; seen < backend.seen.length || seen === 0; ) {
    seen = backend.seen.length;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  const closed = gateway.close();
  await stopsListening(gateway.public);
  await severalLooks();
  expect(await readRest(socket)).toMatchObject({ contentBytes: count * content.length, end: 'closed' });
  await closed;
  // Without the requests of stopsListening.
  const lines = gateway.logs.filter(({ msg, route }) => msg === 'request' && route !== 'none');
  expect(lines).toHaveLength(count);
  expect(lines.filter(({ aborted }) => aborted === true)).toEqual([]);
});

it.each(['1.0', '1.1'])(
  'a response that the deadline of a drain truncates looks truncated, and its log line says so: HTTP/%s',
  async (version) => {
    const { gateway, key } = await startSystem({ answer: chunked, config: { shutdown: { drain_ms: 300 } } });
    const bytes = request(key).replace('HTTP/1.1', `HTTP/${version}`);
    const socket = await ask(gateway.public, bytes);
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    await once(socket, 'readable');
    await gateway.close();
    const { contentBytes, isWhole: whole, end } = await readRest(socket);
    expect(contentBytes).toBeLessThan(LONG);
    if (version === '1.0') expect(end).toBe('reset');
    else expect(whole).toBe(false);
    expect(gateway.logs.filter(({ msg }) => msg === 'request')).toMatchObject([{ status: 200, aborted: true }]);
  },
);

it('in a drain, requests that were pipelined before are answered, and later ones are not forwarded', async () => {
  const held: ServerResponse[] = [];
  const { gateway, key, backend } = await startSystem({
    answer: (_req, res) => void held.push(res),
    config: { shutdown: { not_ready_ms: 3000, drain_ms: 5000 } },
  });
  const session = await openSession(gateway.public);
  session.send(request(key).repeat(2));
  await expect.poll(() => held.length).toBe(2);
  const { used } = (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body;
  expect(used).toBe(2);
  const closed = gateway.close();
  await expect.poll(async () => (await fetch(`${gateway.ops}/readyz`)).status).toBe(503);
  session.send(request(key, '/v1/conversations/late'));
  // A request on another connection that came later was read: so was the late one.
  const other = await openSession(gateway.public);
  other.send(request(key, '/v1/conversations/other'));
  await expect.poll(() => held.length).toBe(3);
  for (const res of held) res.end('content');
  await Promise.all([session.closed, other.closed]);
  expect(session.statuses()).toEqual([200, 200]);
  expect([...session.received().matchAll(/^connection: (.*)\r$/gim)].map(([, value]) => value)).toEqual([
    'keep-alive',
    'close',
  ]);
  expect(backend.seen.map(({ url }) => url)).not.toContain('/api/v1/conversations/late');
  await closed;
});

it('in a drain, a client that goes on pipelining and reads late gets all of the last response', async () => {
  const held: ServerResponse[] = [];
  const content = 'x'.repeat(2_000_000);
  const { gateway, key } = await startSystem({
    answer: (_req, res) => void held.push(res),
    config: { shutdown: { not_ready_ms: 1, drain_ms: 20_000 } },
  });
  const socket = await ask(gateway.public, request(key));
  await expect.poll(() => held.length).toBe(1);
  const closed = gateway.close();
  await stopsListening(gateway.public);
  const pipelining = setInterval(() => socket.write(request(key).repeat(100)), 5);
  onTestFinished(() => clearInterval(pipelining));
  await severalLooks();
  held[0]?.end(content);
  await expect.poll(() => gateway.logs.filter(({ msg }) => msg === 'request').length).toBe(1);
  await severalLooks();
  clearInterval(pipelining);
  expect(await readRest(socket)).toMatchObject({ contentBytes: content.length, isWhole: true });
  await closed;
  expect(held).toHaveLength(1);
});
