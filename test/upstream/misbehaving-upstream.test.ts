import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { call } from './support/caller.ts';
import { startGateway } from './support/gateway.ts';
import { startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

const OK = 'HTTP/1.1 200 OK\r\n';

test('a refused connection is no request: nothing began', async () => {
  const gateway = await startGateway(await freePort());
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('upstream_unavailable refused');
  expect(await gateway.nextOutcome()).toMatchObject({
    kind: 'failed',
    failure: 'refused',
    wasSent: false,
    upstreamMs: 0,
  });
});

test.each<[string, string | Buffer]>([
  ['a first line that is no status line', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['a version that is none', 'HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['status 000', 'HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n'],
  ['status 099', 'HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n'],
  ['status 600', 'HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n'],
  ['status 999', 'HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n'],
  ['an unasked upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['Content-Length with Transfer-Encoding', `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['two lengths', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`],
  ['a length that is none', `${OK}Content-Length: two\r\n\r\nok`],
  ['a folded header field', `${OK}X-A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n`],
  ['NUL in a header field', `${OK}X-A: a\0b\r\nContent-Length: 0\r\n\r\n`],
  ['a space before the colon', `${OK}X-A : 1\r\nContent-Length: 0\r\n\r\n`],
  ['header fields beyond the limit', `${OK}X-A: ${'a'.repeat(2_000)}\r\nContent-Length: 0\r\n\r\n`],
])('%s is an invalid response', async (_, bytes) => {
  const upstream = await startRawUpstream((socket) => socket.write(bytes));
  const gateway = await startGateway(upstream.port, { maxHeaderBytes: 2_000 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('bad_gateway invalid_response');
  expect(await gateway.nextOutcome()).toMatchObject({
    kind: 'failed',
    failure: 'invalid_response',
    wasSent: true,
    headSent: false,
    status: undefined,
  });
});

test.each(['200 O\x07K', '200 ', '200'])(
  'a response that begins with %j gets the usual reason phrase',
  async (line) => {
    const upstream = await startRawUpstream((socket) =>
      socket.write(`HTTP/1.1 ${line}\r\nContent-Length: 2\r\n\r\nok`),
    );
    const answer = await call((await startGateway(upstream.port)).port);
    expect([answer.statusLine, answer.content.toString()]).toEqual(['HTTP/1.1 200 OK', 'ok']);
  },
);

test.each<[string, (socket: Socket) => void]>([
  ['closed', (socket) => socket.end()],
  ['reset', (socket) => socket.resetAndDestroy()],
  ['closed inside the head', (socket) => socket.end(`${OK}Content-Len`)],
])('a connection that is %s before the response counts as sent', async (_, misbehave) => {
  const upstream = await startRawUpstream(misbehave);
  const gateway = await startGateway(upstream.port);
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('bad_gateway');
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', wasSent: true, headSent: false });
});

test.each<[string, string, (socket: Socket) => void]>([
  ['closed short of its length', `${OK}Content-Length: 100\r\n\r\nsome`, (socket) => socket.end()],
  ['reset short of its length', `${OK}Content-Length: 100\r\n\r\nsome`, (socket) => socket.resetAndDestroy()],
  ['closed between chunks', `${OK}Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n`, (socket) => socket.end()],
  [
    'reset between chunks',
    `${OK}Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n`,
    (socket) => socket.resetAndDestroy(),
  ],
  ['with a broken chunk', `${OK}Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n`, (socket) => socket.write('zz\r\n')],
])('a response body that is %s never ends cleanly', async (_, beginning, misbehave) => {
  const connected = Promise.withResolvers<Socket>();
  const upstream = await startRawUpstream((socket) => socket.write(beginning, () => connected.resolve(socket)));
  const gateway = await startGateway(upstream.port);
  const answer = call(gateway.port);
  misbehave(await connected.promise);
  expect((await answer).end).toBe('reset');
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', wasSent: true, headSent: true, status: 200 });
});

test('an invalid first chunk that arrives with the head closes the connection', async () => {
  const upstream = await startRawUpstream((socket) => socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n`));
  const gateway = await startGateway(upstream.port);
  expect((await call(gateway.port)).end).toBe('reset');
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'invalid_response', headSent: true });
});

test('an HTTP/1.0 client sees a reset too, not the end of a response without length', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\nzz\r\n`),
  );
  const gateway = await startGateway(upstream.port);
  expect((await call(gateway.port, '/', 'GET', '1.0')).end).toBe('reset');
});

test('unsolicited bytes are not the response to the next request', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    const name = /GET \/(\w+)/.exec(head)?.[1] ?? '';
    socket.write(`${OK}Content-Length: ${name.length}\r\n\r\n${name}`);
    if (name === 'first') socket.write(`${OK}Content-Length: 6\r\n\r\nforged`);
  });
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  expect((await call(gateway.port, '/first')).content.toString()).toBe('first');
  await gateway.nextOutcome();
  expect((await call(gateway.port, '/second')).content.toString()).toBe('second');
});

test('content after the response to a HEAD is not the response to the next request', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    const forged = `${OK}Content-Length: 6\r\n\r\nforged`;
    if (head.startsWith('HEAD')) socket.write(`${OK}Content-Length: ${forged.length}\r\n\r\n${forged}`);
    else socket.write(`${OK}Content-Length: 4\r\n\r\ntrue`);
  });
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  expect((await call(gateway.port, '/', 'HEAD')).status).toBe(200);
  expect((await call(gateway.port)).content.toString()).toBe('true');
});

test('a response that arrives before the whole request was read is relayed', async () => {
  const upstream = await startHttpUpstream((_req, res) => res.writeHead(401).end('early'));
  const gateway = await startGateway(upstream, { request: () => ({ headers: `\r\nX-Long: ${'a'.repeat(10_000)}` }) });
  expect((await call(gateway.port)).status).toBe(401);
});

test('after every kind of failure the connection is free for the next request', async () => {
  let requests = 0;
  const upstream = await startRawUpstream((socket) => {
    requests++;
    if (requests % 2 === 0) socket.write(`${OK}Content-Length: 2\r\n\r\nok`);
    else if (requests === 1) socket.end(`${OK}Content-Len`);
    else if (requests === 3) socket.write('HTTP/1.1 999 No\r\n\r\n');
    else socket.end(`${OK}Content-Length: 9\r\n\r\nshort`);
  });
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  for (let round = 0; round < 3; round++) {
    await call(gateway.port);
    expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed' });
    expect((await call(gateway.port)).status).toBe(200);
    expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed' });
  }
});
