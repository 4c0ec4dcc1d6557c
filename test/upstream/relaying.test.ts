import { createHash, randomBytes } from 'node:crypto';
import { get, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { headerLine, headerLineOf } from '../../src/upstream/http1/upstream-connection.ts';
import { call, headerValues, openCaller, readUntil } from './support/caller.ts';
import { startGateway } from './support/gateway.ts';
import { linesOf } from './support/header-lines.ts';
import { startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function download(port: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent: false }, (res) => {
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', resolve);
      res.on('error', reject);
    }).on('error', reject);
  });
  return Buffer.concat(chunks);
}

test.each(['with its length', 'chunked'])('5 MB of content arrive byte for byte, %s', async (framing) => {
  const content = randomBytes(5 * 1024 * 1024);
  const upstream = await startHttpUpstream((_req, res) => {
    if (framing === 'chunked') {
      res.write(content.subarray(0, 1_000_003));
      res.end(content.subarray(1_000_003));
    } else {
      res.setHeader('Content-Length', content.length).end(content);
    }
  });
  const gateway = await startGateway(upstream);
  expect(sha256(await download(gateway.port))).toBe(sha256(content));
  expect(await gateway.nextOutcome()).toMatchObject({
    kind: 'completed',
    status: 200,
    wasSent: true,
    contentBytes: content.length,
  });
});

test('names, order and repeats of headers are kept, obs-text included', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write(
      Buffer.from(
        'HTTP/1.1 200 Fine\r\nX-B: 2\r\nset-cookie: a=1\r\nDATE: Sun, 06 Nov 1994 08:49:37 GMT\r\nSet-Cookie: b=2\r\n' +
          'x-b: \xe9\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nok',
        'latin1',
      ),
    ),
  );
  const gateway = await startGateway(upstream.port);
  const answer = await call(gateway.port);
  expect(answer.statusLine).toBe('HTTP/1.1 200 Fine');
  expect(answer.headers).toEqual([
    ...['X-B', '2', 'set-cookie', 'a=1', 'DATE', 'Sun, 06 Nov 1994 08:49:37 GMT', 'Set-Cookie', 'b=2'],
    ...['x-b', '\xe9', 'X-Empty', '', 'Content-Length', '2', 'Connection', 'close'],
  ]);
});

test('the gateway replaces its own response headers and relays no hop-by-hop header', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write(
      'HTTP/1.1 200 OK\r\nX-Request-ID: theirs\r\nX_Tollgate-Secret: 1\r\nKeep-Alive: timeout=9\r\n' +
        'Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n' +
        'Date: Sun, 06 Nov 1994 08:49:38 GMT\r\nContent-Length: 0\r\n\r\n',
    ),
  );
  const gateway = await startGateway(upstream.port, {
    request: () => ({ responseLines: () => linesOf(['X-Request-Id', 'ours', 'X-Extra', '1']) }),
  });
  expect((await call(gateway.port)).headers).toEqual([
    ...['Date', 'Sun, 06 Nov 1994 08:49:37 GMT', 'Content-Length', '0', 'X-Request-Id', 'ours', 'X-Extra', '1'],
    ...['Connection', 'close'],
  ]);
});

test('a response without Date gets one', async () => {
  const upstream = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  const gateway = await startGateway(upstream.port);
  expect(headerValues(await call(gateway.port), 'date')).toHaveLength(1);
});

test('the upstream gets Host first, then the given headers unchanged, and nothing else', async () => {
  const upstream = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  const path = "/api/v1/conversations/a:b@c!$&'()*+,=%C3%A9?q=//x/../y&%zz=[]";
  const gateway = await startGateway(upstream.port, {
    request: () => ({ path, headers: linesOf(['X-b', '1', 'x-A', '', 'X-B', '\xe9']) }),
  });
  await call(gateway.port, '/something/else');
  expect(upstream.heads).toEqual([
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${upstream.port}\r\nX-b: 1\r\nx-A: \r\nX-B: \xe9`,
  ]);
});

test("a given Host replaces the upstream's authority", async () => {
  const upstream = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  const gateway = await startGateway(upstream.port, { request: () => ({ host: 'api.example.com' }) });
  await call(gateway.port);
  expect(upstream.heads[0]?.match(/^host: .*$/gim)).toEqual(['Host: api.example.com']);
});

test.each(['http://[/x', '//', 'http://other.test/elsewhere'])(
  'a target of the form %s has no say in where the request goes',
  async (target) => {
    const upstream = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
    const gateway = await startGateway(upstream.port, { request: () => ({ path: '/approved' }) });
    expect((await call(gateway.port, target)).status).toBe(200);
    expect(upstream.heads[0]).toMatch(/^GET \/approved HTTP\/1\.1\r\nHost: 127\.0\.0\.1:/);
  },
);

test('HEAD gets the headers of GET and no body', async () => {
  const upstream = await startHttpUpstream((_req, res) => res.setHeader('Content-Length', 7).end('content'));
  const gateway = await startGateway(upstream);
  const answer = await call(gateway.port, '/', 'HEAD');
  expect(headerValues(answer, 'content-length')).toEqual(['7']);
  expect(answer.content).toHaveLength(0);
});

test('304 is relayed with its headers and without a body', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write('HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 42\r\n\r\n'),
  );
  const answer = await call((await startGateway(upstream.port)).port);
  expect(answer.statusLine).toBe('HTTP/1.1 304 Not Modified');
  expect(answer.headers.slice(0, 4)).toEqual(['ETag', '"x"', 'Content-Length', '42']);
  expect(answer.content).toHaveLength(0);
});

test('204 has neither body nor Content-Length', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n'),
  );
  const answer = await call((await startGateway(upstream.port)).port);
  expect(answer.status).toBe(204);
  expect(headerValues(answer, 'content-length')).toEqual([]);
  expect(headerValues(answer, 'transfer-encoding')).toEqual([]);
  expect(answer.content).toHaveLength(0);
});

test('interim responses are not mistaken for the final one', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write(
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' +
        'HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!',
    ),
  );
  const answer = await call((await startGateway(upstream.port)).port);
  expect(answer.statusLine).toBe('HTTP/1.1 404 Not Found');
  expect(headerValues(answer, 'link')).toEqual([]);
  expect(answer.content.toString()).toBe('no!');
});

test('a compressed body is relayed unchanged', async () => {
  const content = gzipSync('{"a":1}');
  const upstream = await startHttpUpstream((_req, res) =>
    res.writeHead(200, ['Content-Encoding', 'gzip', 'Content-Length', String(content.length)]).end(content),
  );
  const answer = await call((await startGateway(upstream)).port);
  expect(answer.content.equals(content)).toBe(true);
});

test('a redirect is relayed, not followed', async () => {
  const upstream = await startRawUpstream((socket) =>
    socket.write('HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n'),
  );
  const answer = await call((await startGateway(upstream.port)).port);
  expect(answer.status).toBe(302);
  expect(headerValues(answer, 'location')).toEqual(['/elsewhere']);
  expect(upstream.heads).toHaveLength(1);
});

test('a head that arrives long before its body is relayed at once', async () => {
  const upstream = await startHttpUpstream((_req, res) => res.flushHeaders());
  const gateway = await startGateway(upstream);
  const caller = openCaller(gateway.port);
  caller.write('GET / HTTP/1.1\r\nHost: caller.test\r\n\r\n');
  expect(await readUntil(caller, (text) => text.includes('\r\n\r\n'))).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

test('an HTTP/1.0 client gets a chunked body without chunks', async () => {
  const upstream = await startHttpUpstream((_req, res) => {
    res.write('one ');
    res.end('two');
  });
  const answer = await call((await startGateway(upstream)).port, '/', 'GET', '1.0');
  expect(headerValues(answer, 'transfer-encoding')).toEqual([]);
  expect(answer.content.toString()).toBe('one two');
});

test('connections are kept and reused', async () => {
  const upstream = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  for (let i = 0; i < 3; i++) await call(gateway.port);
  expect([upstream.heads.length, upstream.connections()]).toEqual([3, 1]);
});

test('close waits for requests in progress and in the queue, and later ones are still served', async () => {
  const held = Promise.withResolvers<ServerResponse>();
  const upstream = await startHttpUpstream((req, res) => {
    if (req.url === '/first') held.resolve(res);
    else res.end('second');
  });
  const queued = Promise.withResolvers<void>();
  const gateway = await startGateway(upstream, {
    maxConnections: 1,
    request: (url) => {
      if (url === '/second') queued.resolve();
      return {};
    },
  });
  const first = call(gateway.port, '/first');
  const firstOutcome = gateway.nextOutcome();
  const upstreamAnswer = await held.promise;
  const second = call(gateway.port, '/second');
  await queued.promise;
  await setImmediate();
  let closed = false;
  const closing = gateway.backend.close().then(() => {
    closed = true;
  });
  await setImmediate();
  expect(closed).toBe(false);
  upstreamAnswer.end('first');
  expect((await first).content.toString()).toContain('first');
  expect((await second).content.toString()).toContain('second');
  await Promise.all([closing, firstOutcome, gateway.nextOutcome()]);

  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed', status: 200 });
});

test('a bug before the transport rejects, and no request hangs', async () => {
  const upstream = await startRawUpstream((socket) => socket.end());
  const gateway = await startGateway(upstream.port, {
    request: () => ({ beginDeadlineMs: Symbol('no number') as unknown as number }),
  });
  const answer = call(gateway.port);
  await expect(gateway.nextOutcome()).rejects.toThrow(TypeError);
  expect((await answer).status).toBe(500);
});

test('a bug in a callback rejects and leaves the response to the caller of forward', async () => {
  const upstream = await startHttpUpstream((_req, res) => res.end('x'));
  const gateway = await startGateway(upstream, {
    request: () => ({
      responseLines() {
        throw new TypeError('a bug');
      },
    }),
  });
  const answer = call(gateway.port);
  await expect(gateway.nextOutcome()).rejects.toThrow('a bug');
  expect((await answer).status).toBe(500);
});

test.each([
  ['X-A', 'b\r\nX-C: d'],
  ['X-A: b\r\nX-C', 'd'],
  ['X-A', '\u0100'],
  ['', 'b'],
])('no header %j: %j is ever written', (name, value) => {
  expect(() => headerLine(name, value)).toThrow(TypeError);
  expect(() => headerLineOf(name)(value)).toThrow(TypeError);
});

test('a Host that cannot be sent is a bug, not a failure of the upstream', async () => {
  const upstream = await startRawUpstream((socket) => socket.end());
  const gateway = await startGateway(upstream.port, { request: () => ({ host: 'b\r\nX-C: d' }) });
  const answer = call(gateway.port);
  await expect(gateway.nextOutcome()).rejects.toThrow('invalid Host header');
  expect((await answer).status).toBe(500);
  expect(upstream.heads).toEqual([]);
});
