import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANY_CHARACTER } from '../support/any-character.ts';
import { shareOfRuns } from '../support/share-of-runs.ts';
import { fieldValues } from './support/http-reader.ts';
import { expectCanonical, get, useHttpSystem } from './support/system.ts';

const system = useHttpSystem({
  hasSecond: true,
  config: {
    auth: { failures_per_minute: 100_000 },
    limits: { body_stall_timeout_ms: 100 },
    routes: [
      { path: '/api/v1/conversations', methods: ['GET'] },
      { path: '/api/v1/conversations/{id}', methods: ['GET'], upstream: 'second' },
      { path: '/api/upload', methods: ['POST', 'PUT', 'DELETE'], upstream: 'second' },
    ] as never,
  },
});

/** How often each of the properties is tried. */
const RUNS = shareOfRuns(2000);

const EOL = fc.oneof(
  { weight: 60, arbitrary: fc.constant('\r\n') },
  fc.constantFrom('\n', '\r', '\r\r\n', ' \r\n', '\r\n ', '\0\r\n'),
);
const METHOD = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('GET', 'HEAD') },
  fc.constantFrom('get', 'POST', 'OPTIONS', 'CONNECT', 'TRACE', 'G', 'GETS'),
);
const PIECE = fc.constantFrom(
  ...[
    '/',
    '/',
    '/v1',
    '/api',
    '/conversations',
    '/conversations',
    '..',
    '.',
    '%2e',
    '%2f',
    '%5c',
    '%25',
    '%00',
    '%c3%a9',
    '%20',
    ';',
    ';a=b',
    '\\',
    '//',
  ],
  ...[
    '?',
    '?a=b',
    '#',
    '@',
    'a',
    'id-1',
    'http://',
    'evil.example',
    ':80',
    '*',
    ' ',
    '%',
    'V1',
    '\x00',
    '\x7f',
    '\xe9',
    '"',
    '<',
  ],
);
const TARGET = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      '/v1/conversations',
      '/api/v1/conversations',
      '/v1/conversations/a',
      'http://h.example/v1/conversations/b?c',
    ),
  },
  { weight: 2, arbitrary: fc.array(PIECE, { maxLength: 4 }).map((pieces) => `/v1/conversations${pieces.join('')}`) },
  fc.array(PIECE, { maxLength: 8 }).map((pieces) => pieces.join('')),
);
const VERSION = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('HTTP/1.1', 'HTTP/1.0') },
  fc.constantFrom('HTTP/2.0', 'HTTP/1.2', 'http/1.1', 'HTTP/0.9', '', 'HTTP/1.1 '),
);
const NAME = fc.oneof(
  fc.constantFrom(
    ...[
      'X-A',
      'Accept',
      'Cookie',
      'Connection',
      'Keep-Alive',
      'TE',
      'Upgrade',
      'Expect',
      'Content-Length',
      'Transfer-Encoding',
      'Host',
      'Via',
      'Forwarded',
    ],
  ),
  fc.constantFrom(
    ...[
      'X-Tollgate-Customer',
      'X_Tollgate_Plan',
      'x.tollgate.key.id',
      'X-Forwarded-For',
      'X_Forwarded_Host',
      'X-Request-Id',
      'X-Real-IP',
      'X-Original-URL',
      'Content_Length',
    ],
  ),
  fc.string({ unit: fc.constantFrom(..."abcXYZ019-_.!#$%&'*+^`|~ \t\0:\x7f\xe9()"), minLength: 0, maxLength: 6 }),
);
const VALUE = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '1',
    'close',
    'keep-alive',
    'upgrade',
    'chunked',
    'gzip, chunked',
    '100-continue',
    'x-tollgate-customer, via',
    'h2c',
    'evil',
    'a, b',
    'api.example',
  ),
  fc.string({ unit: ANY_CHARACTER, maxLength: 12 }).map((text) => Buffer.from(text).toString('latin1')),
);
const AUTHORIZATION = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('Bearer KEY', 'bearer  KEY') },
  fc.constantFrom('Basic KEY', 'Bearer', 'Bearer KEY KEY', 'Bearer KEY,KEY', ''),
);
const HOST = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('api.example', 'API.example:80') },
  fc.constantFrom('', 'a,b', 'u@a', 'a/b', '[::1', ':80'),
);

const REQUEST = fc
  .record({
    method: METHOD,
    target: TARGET,
    version: VERSION,
    host: HOST,
    authorization: AUTHORIZATION,
    more: fc.array(fc.tuple(NAME, VALUE), { maxLength: 4 }),
    ends: fc.array(EOL, { minLength: 8, maxLength: 8 }),
    after: fc.oneof({ weight: 10, arbitrary: fc.constant('') }, fc.constantFrom('0\r\n\r\n', 'abcde', '\r\n', '\0')),
  })
  .map(({ method, target, version, host, authorization, more, ends, after }) => {
    const lines = [
      `${method} ${target} ${version}`,
      `Host: ${host}`,
      `Authorization: ${authorization}`,
      ...more.map(([name, value]) => `${name}: ${value}`),
    ];
    return `${lines.map((line, i) => line + (ends[i] ?? '\r\n')).join('')}\r\n${after}`;
  });

/** A part of an upload: its bytes, and whether RFC 9112 allows them there. */
type Part = readonly [bytes: string, isValid: boolean];

function parts(valid: readonly string[], invalid: readonly string[]) {
  const all = [...valid.map((bytes): Part => [bytes, true]), ...invalid.map((bytes): Part => [bytes, false])];
  const right = fc.constantFrom(...all.slice(0, valid.length));
  return fc.oneof({ weight: 30, arbitrary: right }, fc.constantFrom(...all));
}

const CODING = parts(
  ['Transfer-Encoding: chunked', 'transfer-encoding:Chunked', 'TRANSFER-ENCODING: \tchunked'],
  [
    'Transfer-Encoding : chunked',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: gzip, chunked',
    'X: y\r\n Transfer-Encoding: chunked',
  ],
);
const OTHER_FIELD = parts(
  [
    'X: y',
    'Connection: transfer-encoding',
    'Connection: content-length',
    'Content_Length: 3',
    'Transfer_Encoding: x',
    'TE: trailers',
    'Expect: 100-continue',
  ],
  [
    'Content-Length: 0',
    'Content-Length: 3',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked',
    'X: y\nZ: z',
    'Expect: x',
  ],
);
const EXTENSION = parts(['', '', '', ';a', ';a=b', ';a="b; c"', ';a;b=c'], [' x', ';\0', '\n', ';a="\r\n"', ';a=\n']);
const LINE_END = parts(['\r\n'], ['\n', '\r', '', '\r\n\r\n', '\r\r\n', ' \r\n']);
const DATA = fc.oneof(
  fc.constantFrom('0\r\n\r\n', '\r\n', 'GET /api/v1/conversations HTTP/1.1\r\nHost: a\r\n\r\n', 'a', '5\r\nabcde\r\n'),
  fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 30 }),
);
/** Added to the length of the data. */
const EXCESS = fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 1, 2 ** 64));
const DIGITS = fc.constantFrom(
  (size: string) => size,
  (size: string) => size.toUpperCase(),
  (size: string) => `00${size}`,
);
const CHUNK = fc
  .tuple(DATA, EXCESS, DIGITS, EXTENSION, LINE_END, LINE_END)
  .map(([data, excess, digits, extension, first, last]) => {
    const size = (BigInt(excess) + BigInt(data.length)).toString(16);
    return `${digits(size)}${extension[0]}${first[0]}${data}${last[0]}`;
  });
const TRAILERS = parts(
  ['', 'X-T: 1\r\n', 'Authorization: Bearer x\r\nHost: b\r\n'],
  ['X\r\n', 'Content-Length: 3\r\n', 'X: y\n', ' X: y\r\n'],
);

const CHUNKED_UPLOAD = fc
  .record({
    method: fc.constantFrom('POST', 'PUT', 'DELETE'),
    coding: CODING,
    field: OTHER_FIELD,
    chunks: fc.array(CHUNK, { maxLength: 4 }),
    lastLine: LINE_END,
    trailers: TRAILERS,
    end: LINE_END,
    isReversed: fc.boolean(),
  })
  .map(({ method, coding, field, chunks, lastLine, trailers, end, isReversed }) => {
    const fields = [coding[0], field[0], 'Authorization: Bearer KEY'];
    const lines = [`${method} /api/upload HTTP/1.1`, 'Host: a', ...(isReversed ? fields.toReversed() : fields)];
    return {
      method,
      head: `${lines.join('\r\n')}\r\n\r\n`,
      body: `${chunks.join('')}0${lastLine[0]}${trailers[0]}${end[0]}`,
      hasValidHead: coding[1] && field[1],
    };
  });

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const CHUNK_LINE = new RegExp(`^([0-9A-Fa-f]+)(?:;${TOKEN}(?:=(?:${TOKEN}|"[^"\\\\\\x00-\\x1f]*"))?)*\\r\\n`);
const TRAILER = new RegExp(`^(?!content-length|transfer-encoding)${TOKEN}:[\\t\\x20-\\x7e]*\\r\\n`, 'i');

/** Returns the content of a chunked body (RFC 9112 §7.1) and what follows it; undefined if it is malformed or unfinished. */
function decodeChunks(text: string): { readonly content: string; readonly rest: string } | undefined {
  const [line, digits = ''] = CHUNK_LINE.exec(text) ?? [];
  if (line === undefined) return undefined;
  const size = Number.parseInt(digits, 16);
  let rest = text.slice(line.length + size);
  if (size > 0) {
    const decoded = rest.startsWith('\r\n') ? decodeChunks(rest.slice(2)) : undefined;
    return decoded && { ...decoded, content: text.slice(line.length, line.length + size) + decoded.content };
  }
  for (let field = TRAILER.exec(rest); field !== null; field = TRAILER.exec(rest)) rest = rest.slice(field[0].length);
  return rest.startsWith('\r\n') ? { content: '', rest: rest.slice(2) } : undefined;
}

/** What a server could take for the end of the request before. */
const MARK = '\r\nX-Mark: end\r\n\r\n';

describe('whatever is sent, the backend sees it as one canonical request or not at all', () => {
  it('one request, made of parts that are right or wrong', async () => {
    let passed = 0;
    await fc.assert(
      fc.asyncProperty(REQUEST, async (bytes) => {
        // A second request ends what is unfinished, so that nothing is waited for; it has no key, and is never forwarded.
        const { seen, answers, end, fault } = await system.attempt(bytes + MARK, {
          answers: 2,
          isHead: (i) => i === 0 && bytes.startsWith('HEAD'),
        });
        expect(fault).toBeUndefined();
        expect(end).not.toBe('open');
        expect(seen.length).toBeLessThanOrEqual(1);
        for (const { status } of answers) expect(status).not.toBe(500);
        const [request] = seen;
        if (request === undefined) {
          expect(answers[0]?.status ?? 400).toBeGreaterThanOrEqual(400);
          return;
        }
        passed++;
        expect(answers[0]?.status).toBe(200);
        expectCanonical(request, system.upstream, bytes);
        // What the backend got is what was sent: the method, and the target but for alias, scheme and host.
        const [, method, target = ''] = /^(\S+) +(\S+)/.exec(bytes.trimStart()) ?? [];
        const path = target.replace(/^http:\/\/[^/?]*/i, '');
        expect([request.method, request.target]).toEqual([method, path.startsWith('/api/') ? path : `/api${path}`]);
        expect(fieldValues(request, 'host')).toEqual([new URL(system.upstream.url).host]);
      }),
      { numRuns: RUNS },
    );
    expect(passed).toBeGreaterThan(RUNS / 20);
  });

  it('several requests over one connection, some of them wrong', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(REQUEST, { minLength: 2, maxLength: 5 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 60 })),
        async (requests, cuts) => {
          const whole = requests.join('').replaceAll('KEY', system.key) + MARK;
          const pieces: string[] = [];
          for (let at = 0; at < whole.length; ) {
            const size = 20 * (cuts.next().value ?? 1);
            pieces.push(whole.slice(at, at + size));
            at += size;
          }
          // HEAD and GET would have to be told apart by what the gateway took for a request; no answer's content is looked at.
          const { seen, end } = await system.attempt(pieces, {
            answers: requests.length + 1,
            isHead: () => false,
          });
          expect(end).not.toBe('open');
          expect(seen.length).toBeLessThanOrEqual(requests.length);
          for (const request of seen) expectCanonical(request, system.upstream, whole);
        },
      ),
      { numRuns: RUNS / 2 },
    );
  });

  it('an upload in chunks, made of parts that are right or wrong', async () => {
    let passed = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(CHUNKED_UPLOAD, async ({ method, head, body, hasValidHead }) => {
        const next = get('/v1/conversations/next');
        const { seen, answers, end, fault } = await system.attempt(head + body + next, {
          answers: 2,
        });
        const statuses = answers.map(({ status }) => status).filter((status) => status !== 100);
        expect(fault).toBeUndefined();
        expect(end).not.toBe('open');
        const decoded = hasValidHead ? decodeChunks(body + next) : undefined;
        const requests = seen.map((request) => [request.method, request.target, request.content]);
        if (decoded === undefined) {
          refused++;
          expect(requests).toEqual([]);
          expect([statuses.length, end]).toEqual([1, 'closed']);
          expect(statuses[0]).toBeGreaterThanOrEqual(400);
          return;
        }
        passed++;
        // Line ends before a request line are ignored, and may be bare (RFC 9112 §2.2).
        const isNextWhole = decoded.rest.replace(/^(\r?\n)+/, '') === next;
        expect(statuses).toEqual([200, isNextWhole ? 200 : 400]);
        const nextSeen = ['GET', '/api/v1/conversations/next', ''];
        expect(requests).toEqual([[method, '/api/upload', decoded.content], ...(isNextWhole ? [nextSeen] : [])]);
      }),
      { numRuns: RUNS },
    );
    expect(Math.min(passed, refused)).toBeGreaterThan(RUNS / 20);
  });
});
