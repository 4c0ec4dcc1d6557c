import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { fieldValue, fieldValues, type ReadRequest } from './support/http-reader.ts';
import type { UpstreamAnswer } from './support/recording-upstream.ts';
import { get, head, useHttpSystem } from './support/system.ts';

const OK = 'HTTP/1.1 200 OK';
const LATIN1 = Array.from({ length: 128 }, (_, i) => String.fromCharCode(0x80 + i)).join('');

/** What the backend does for an id. */
const answers: Record<string, UpstreamAnswer> = {
  length: `${head(OK, 'Content-Length: 5', 'ETag: "v1"')}hello`,
  chunked: `${head(OK, 'Transfer-Encoding: chunked', 'ETag: "v1"')}5\r\nhello\r\n3;a=b\r\n, y\r\n0\r\nX-Trailer: dropped\r\n\r\n`,
  close: (socket) => socket.end(`${head(OK, 'ETag: "v1"')}hello`),
  old: (socket) => socket.end(`${head('HTTP/1.0 200 OK', 'ETag: "v1"')}hello`),
  empty: head(OK, 'Content-Length: 0'),
  bytes: `${head(OK, `Content-Length: 128`)}${LATIN1}`,
  'head-only': head(OK, 'Content-Length: 5000', 'ETag: "v1"'),
  'head-chunked': head(OK, 'Transfer-Encoding: chunked', 'ETag: "v1"'),
  204: head('HTTP/1.1 204 No Content', 'ETag: "v1"'),
  '204-length': head('HTTP/1.1 204 No Content', 'Content-Length: 0'),
  205: head('HTTP/1.1 205 Reset Content', 'Content-Length: 0'),
  206: `${head('HTTP/1.1 206 Partial Content', 'Content-Range: bytes 0-4/10', 'Content-Length: 5')}hello`,
  301: head('HTTP/1.1 301 Moved Permanently', 'Location: http://inner.example/', 'Content-Length: 0'),
  304: head('HTTP/1.1 304 Not Modified', 'ETag: "v1"'),
  '304-length': head('HTTP/1.1 304 Not Modified', 'ETag: "v1"', 'Content-Length: 5000'),
  412: head('HTTP/1.1 412 Precondition Failed', 'Content-Length: 0'),
  418: `${head("HTTP/1.1 418 I'm a teapot", 'Content-Length: 3')}tea`,
  599: head('HTTP/1.1 599 Odd', 'Content-Length: 0'),
  '100-first': `${head('HTTP/1.1 100 Continue')}${head(OK, 'Content-Length: 2')}ok`,
  '102-103-first': `${head('HTTP/1.1 102 Processing')}${head('HTTP/1.1 103 Early Hints', 'Link: </a>; rel=preload')}${head(OK, 'Content-Length: 2')}ok`,
  '199-first': `${head('HTTP/1.1 199 Odd')}${head(OK, 'Content-Length: 2')}ok`,
  hops: `${head(OK, 'Connection: keep-alive, X-Hop', 'X-Hop: marked', 'Keep-Alive: timeout=9, max=marked', 'Proxy-Connection: marked', 'Proxy-Authenticate: marked', 'Upgrade: marked', 'TE: marked', 'Trailer: marked', 'X-Tollgate-Secret: marked', 'x_tollgate_secret: marked', 'RateLimit: marked', 'X-RateLimit-Limit: marked', 'X-Request-Id: marked', 'Content-Length: 2')}ok`,
  fields: `${head(OK, 'X-Many: 1', 'Set-Cookie: a=1', 'x-many: 2', 'Set-Cookie: b=2', 'X-Many:', `X-Bytes: ${LATIN1}`, "!#$%&'*+-.^_`|~: x", 'Server: inner', 'Content-Length: 2')}ok`,
  dated: head(OK, 'Date: Sun, 06 Nov 1994 08:49:37 GMT', 'Content-Length: 0'),
  'odd-reason': head('HTTP/1.1 200 \xe9t\xe9', 'Content-Length: 0'),
  'control-reason': head('HTTP/1.1 200 O\x07K', 'Content-Length: 0'),
  'two-answers': `${head(OK, 'Content-Length: 4')}true${head(OK, 'Content-Length: 6')}forged`,
  'no-reason': head('HTTP/1.1 200', 'Content-Length: 0'),
};

/** What is no answer; the caller gets 502. */
const NONSENSE: Record<string, UpstreamAnswer> = {
  ...Object.fromEntries(
    ['000', '001', '099', '600', '700', '999'].map((status) => [
      status,
      head(`HTTP/1.1 ${status} X`, 'Content-Length: 0'),
    ]),
  ),
  101: head('HTTP/1.1 101 Switching Protocols', 'Connection: upgrade', 'Upgrade: websocket'),
  'four-digits': head('HTTP/1.1 2000 X', 'Content-Length: 0'),
  'two-digits': head('HTTP/1.1 20 X', 'Content-Length: 0'),
  negative: head('HTTP/1.1 -20 X', 'Content-Length: 0'),
  'http-2': head('HTTP/2.0 200 OK', 'Content-Length: 0'),
  'http-12': head('HTTP/1.2 200 OK', 'Content-Length: 0'),
  'no-version': head('200 OK', 'Content-Length: 0'),
  ssh: 'SSH-2.0-OpenSSH_9.2\r\n\r\n',
  noise: '\x16\x03\x01\x02\0\x01\r\n\r\n',
  'bare-lf': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
  fold: head(OK, 'X-A: 1', ' 2', 'Content-Length: 0'),
  nul: head(OK, 'X-A: a\0b', 'Content-Length: 0'),
  cr: head(OK, 'X-A: a\rb', 'Content-Length: 0'),
  space: head(OK, 'Content-Length : 0'),
  'no-colon': head(OK, 'X-A', 'Content-Length: 0'),
  'empty-name': head(OK, ': a', 'Content-Length: 0'),
  'two-lengths': head(OK, 'Content-Length: 0', 'Content-Length: 0'),
  'length-list': head(OK, 'Content-Length: 0, 0'),
  'length-plus': head(OK, 'Content-Length: +0'),
  'length-empty': head(OK, 'Content-Length:'),
  'length-and-chunked': `${head(OK, 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  gzip: `${head(OK, 'Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
  identity: head(OK, 'Transfer-Encoding: identity'),
  'twice-chunked': `${head(OK, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  'chunked-in-1.0': `${head('HTTP/1.0 200 OK', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  'huge-field': head(OK, `X-A: ${'a'.repeat(70_000)}`, 'Content-Length: 0'),
  'many-fields': head(OK, ...Array(10_000).fill('X-A: a'), 'Content-Length: 0'),
  'endless-head': `${OK}\r\nX-A: ${'a'.repeat(100_000)}`,
  closed: (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
  'closed-in-head': (socket) => socket.end(`${OK}\r\nContent-Len`),
};

/** What begins well and ends badly; the caller's connection is reset. */
const CUT: Record<string, UpstreamAnswer> = {
  'cut-length': (socket) => late(socket, `${head(OK, 'Content-Length: 100')}some`, () => socket.end()),
  'cut-length-reset': (socket) =>
    late(socket, `${head(OK, 'Content-Length: 100')}some`, () => socket.resetAndDestroy()),
  'cut-chunks': (socket) => late(socket, `${head(OK, 'Transfer-Encoding: chunked')}4\r\nsome\r\n`, () => socket.end()),
  'cut-chunk': (socket) => late(socket, `${head(OK, 'Transfer-Encoding: chunked')}9\r\nsome`, () => socket.end()),
  'broken-size': `${head(OK, 'Transfer-Encoding: chunked')}4\r\nsome\r\nzz\r\n`,
  'negative-size': `${head(OK, 'Transfer-Encoding: chunked')}4\r\nsome\r\n-1\r\n`,
  'huge-size': `${head(OK, 'Transfer-Encoding: chunked')}4\r\nsome\r\nfffffffffffffffff\r\n`,
  'broken-end': `${head(OK, 'Transfer-Encoding: chunked')}4\r\nsomeX\r\n0\r\n\r\n`,
  'bare-lf-chunks': `${head(OK, 'Transfer-Encoding: chunked')}4\nsome\n0\n\n`,
  'long-extension': `${head(OK, 'Transfer-Encoding: chunked')}4;${'a'.repeat(10_000)}\r\nsome\r\n0\r\n\r\n`,
  'broken-trailer': `${head(OK, 'Transfer-Encoding: chunked')}4\r\nsome\r\n0\r\nX Y\r\n\r\n`,
};

function late(socket: Socket, bytes: string, then: () => void): void {
  socket.write(bytes, 'latin1', () => setImmediate(then));
}

const all = { ...answers, ...NONSENSE, ...CUT };
const answerOf = ({ target }: ReadRequest): UpstreamAnswer =>
  all[target.split('/').at(-1) ?? ''] ?? `${head(OK, 'Content-Length: 2')}ok`;

const { attempt } = useHttpSystem({ answer: answerOf });

async function ask(id: string, method = 'GET', version = '1.1', ...fields: string[]) {
  const bytes = get(`/v1/conversations/${id}`, ...fields)
    .replace('GET', method)
    .replace('HTTP/1.1', `HTTP/${version}`);
  const tried = await attempt(bytes);
  const [answer] = tried.answers;
  if (answer === undefined) throw new Error(`${id}: no answer, ${tried.end}`);
  expect(tried.rest).toBe('');
  return { ...tried, answer };
}

describe('a response arrives as the backend sent it', () => {
  it.each([
    ['length', 'hello'],
    ['chunked', 'hello, y'],
    ['close', 'hello'],
    ['old', 'hello'],
    ['empty', ''],
    ['bytes', LATIN1],
    ['206', 'hello'],
    ['418', 'tea'],
    ['100-first', 'ok'],
    ['102-103-first', 'ok'],
    ['199-first', 'ok'],
  ])('%s', async (id, content) => {
    for (const version of ['1.1', '1.0']) {
      for (const connection of ['keep-alive', 'close']) {
        const { answer, end } = await ask(id, 'GET', version, `Connection: ${connection}`);
        expect(answer.content).toBe(content);
        // HTTP/1.0 knows no chunks: there the end of the connection ends the content.
        if (version === '1.0') expect(answer.framing).not.toBe('chunked');
        if (connection === 'close' || answer.framing === 'close') expect(end).toBe('closed');
        expect(fieldValues(answer, 'x-trailer')).toEqual([]);
      }
    }
  });

  it.each([
    ['200', 'length'],
    ['204', '204'],
    ['205', '205'],
    ['206', '206'],
    ['301', '301'],
    ['304', '304'],
    ['412', '412'],
    ['418', '418'],
    ['599', '599'],
  ])('status %s stays', async (status, id) => {
    for (const version of ['1.1', '1.0']) {
      const { answer } = await ask(
        id,
        'GET',
        version,
        'If-None-Match: "v1"',
        'If-Match: "x"',
        'If-Modified-Since: x',
        'Range: bytes=0-4',
      );
      expect(answer.status).toBe(Number(status));
    }
  });

  it('a conditional request arrives with its conditions', async () => {
    const { seen } = await ask(
      '304',
      'GET',
      '1.1',
      'If-None-Match: "v1", W/"v2"',
      'If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT',
      'If-Range: "v1"',
      'Range: bytes=0-4',
    );
    expect(seen[0]?.fields.map(([name]) => name)).toEqual(
      expect.arrayContaining(['If-None-Match', 'If-Modified-Since', 'If-Range', 'Range']),
    );
  });

  it.each(['204', '204-length', '304', '304-length'])(
    '%s has no content, and the connection stays open',
    async (id) => {
      const {
        answers: [first, second],
        end,
      } = await attempt(get(`/v1/conversations/${id}`) + get('/v1/conversations/length'), { answers: 2 });
      expect([first?.status, first?.content, second?.content, end]).toEqual([
        Number(id.slice(0, 3)),
        '',
        'hello',
        'kept',
      ]);
      if (id.startsWith('204')) expect(fieldValues(first ?? { fields: [] }, 'content-length')).toEqual([]);
      if (id === '304-length') expect(fieldValue(first ?? { fields: [] }, 'content-length')).toBe('5000');
    },
  );

  it.each(['head-only', 'head-chunked', '204', '304-length', 'empty'])(
    'HEAD of %s has the headers and no content, and the connection stays open',
    async (id) => {
      const bytes = get(`/v1/conversations/${id}`).replace('GET', 'HEAD') + get('/v1/conversations/length');
      const {
        answers: [first, second],
        end,
      } = await attempt(bytes, { answers: 2, isHead: (index) => index === 0 });
      expect([first?.content, second?.content, end]).toEqual(['', 'hello', 'kept']);
      if (id === 'head-only') expect(fieldValue(first ?? { fields: [] }, 'content-length')).toBe('5000');
      if (id.startsWith('head')) expect(fieldValue(first ?? { fields: [] }, 'etag')).toBe('"v1"');
    },
  );

  it('fields of one hop, and those that only the gateway gives, are not relayed', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { answer } = await ask('hops', method);
      expect(JSON.stringify(answer.fields)).not.toContain('marked');
      for (const name of ['ratelimit', 'x-ratelimit-limit', 'x-request-id'])
        expect(fieldValues(answer, name).length).toBe(1);
    }
  });

  it('all others are, repeated ones in order, byte for byte', async () => {
    const { answer } = await ask('fields');
    expect(answer.fields.filter(([name]) => name.toLowerCase() === 'x-many')).toEqual([
      ['X-Many', '1'],
      ['x-many', '2'],
      ['X-Many', ''],
    ]);
    expect(fieldValues(answer, 'set-cookie')).toEqual(['a=1', 'b=2']);
    expect(fieldValue(answer, 'x-bytes')).toBe(LATIN1);
    expect(fieldValue(answer, "!#$%&'*+-.^_`|~")).toBe('x');
    expect(fieldValue(answer, 'server')).toBe('inner');
  });

  it('Date is there once: the one of the backend, where it gave one', async () => {
    expect(fieldValues((await ask('dated')).answer, 'date')).toEqual(['Sun, 06 Nov 1994 08:49:37 GMT']);
    expect(fieldValues((await ask('length')).answer, 'date').length).toBe(1);
  });

  it('unsolicited bytes are the response to no request', async () => {
    for (let round = 0; round < 10; round++) {
      expect((await ask('two-answers')).answer.content).toBe('true');
      expect((await ask('length')).answer.content).toBe('hello');
      expect((await ask('two-answers', 'HEAD')).answer.content).toBe('');
      expect((await ask('length')).answer.content).toBe('hello');
    }
  });

  it('a reason phrase never carries control characters', async () => {
    for (const id of ['odd-reason', 'control-reason', 'no-reason']) expect((await ask(id)).answer.reason).toBe('OK');
    expect((await ask('418')).answer.reason).toBe("I'm a teapot");
  });
});

describe('an invalid response becomes 502, and nothing of it is relayed', () => {
  it.each(Object.keys(NONSENSE))('%s', async (id) => {
    for (const [method, version] of [
      ['GET', '1.1'],
      ['HEAD', '1.1'],
      ['GET', '1.0'],
    ] as const) {
      const { answer, seen } = await ask(id, method, version);
      expect(answer.status).toBe(502);
      expect(fieldValues(answer, 'cache-control')).toEqual(['no-store']);
      expect(fieldValues(answer, 'x-a')).toEqual([]);
      if (method === 'GET') expect(JSON.parse(answer.content)).toMatchObject({ code: 'bad_gateway', status: 502 });
      // One request of the caller's is one at the backend; at most it is sent again where it is sure that it was not read.
      expect(new Set(seen.map(({ target }) => target)).size).toBe(1);
    }
  });

  it('and the next request of the connection gets its response', async () => {
    for (const id of ['999', 'bare-lf', 'reset', 'two-lengths']) {
      const { answers: both, end } = await attempt(get(`/v1/conversations/${id}`) + get('/v1/conversations/length'), {
        answers: 2,
      });
      expect([both.map(({ status }) => status), end]).toEqual([[502, 200], 'kept']);
    }
  });
});

describe('a truncated response resets the connection of the client, and never ends cleanly', () => {
  it.each(Object.keys(CUT))('%s', async (id) => {
    for (const version of ['1.1', '1.0']) {
      for (const connection of ['keep-alive', 'close']) {
        const bytes = get(`/v1/conversations/${id}`, `Connection: ${connection}`).replace(
          'HTTP/1.1',
          `HTTP/${version}`,
        );
        expect((await attempt(bytes)).end).toBe('reset');
      }
    }
  });
});
