/** Uploads whose framing is right, wrong or ambiguous, each followed by another request, and what must become of them. */
import { head } from '../http/support/system.ts';

/** A request as the backend sees it. */
interface Seen {
  readonly method: string;
  readonly target: string;
  readonly content: string;
}

export interface SmugglingCase {
  readonly name: string;
  /** `KEY` stands for the valid key, `LENGTH` and `HEX` for the length of {@link HIDDEN} with that key. */
  readonly bytes: string;
  readonly seen: readonly Seen[];
  /** Of the responses, without 100; after one of 400 and above, the connection must be closed. */
  readonly statuses: readonly number[];
}

function request(method: string, path: string, ...fields: readonly string[]): string {
  return head(`${method} ${path} HTTP/1.1`, 'Host: api.example', 'Authorization: Bearer KEY', ...fields);
}

const post = (...fields: readonly string[]) => request('POST', '/api/upload', ...fields);
export const HIDDEN = request('GET', '/api/hidden');
const NEXT = request('GET', '/api/next');
const NEXT_SEEN: Seen = { method: 'GET', target: '/api/next', content: '' };
const CHUNKED = 'Transfer-Encoding: chunked';
/** `abcde`, chunked. */
const CHUNKS = '5\r\nabcde\r\n0\r\n\r\n';

/** The upload has this content, and the request behind it is served as well. */
function passes(name: string, upload: string, content: string, method = 'POST'): SmugglingCase {
  const seen = [{ method, target: '/api/upload', content }, NEXT_SEEN];
  return { name: `passes: ${name}`, bytes: upload + NEXT, seen, statuses: [200, 200] };
}

/** Neither the upload nor the request behind it is worked on. */
function refused(name: string, upload: string, status = 400): SmugglingCase {
  return { name: `${status}: ${name}`, bytes: upload + NEXT, seen: [], statuses: [status] };
}

/** The upload passes, and what follows it is no request. */
function ends(name: string, upload: string, content: string, statuses = [200, 400]): SmugglingCase {
  return {
    name: `ends: ${name}`,
    bytes: upload + NEXT,
    seen: [{ method: 'POST', target: '/api/upload', content }],
    statuses,
  };
}

function old(bytes: string): string {
  return bytes.replace('HTTP/1.1', 'HTTP/1.0');
}

const LONG = `${'a'.repeat(20_000)}\r\n0\r\n\r\nGET /api/hidden HTTP/1.1\r\nHost: a\r\n\r\n`;
const LONG_CHUNK = `${LONG.length.toString(16)}\r\n${LONG}\r\n`;

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const SAME_CODINGS = ['Chunked', 'CHUNKED', '\tchunked', ' chunked ', 'chunkeD'];
const OTHER_CODINGS = [
  ...[
    'chunked, chunked',
    'chunked,chunked',
    'gzip, chunked',
    'chunked, gzip',
    'identity, chunked',
    'chunked, identity',
  ],
  ...[
    'chunked ;q',
    'chunked;q=1',
    ',chunked',
    'chunked,',
    'identity',
    'gzip',
    'xchunked',
    'chunkedx',
    'chunke',
    '"chunked"',
  ],
  ...['chun ked', 'x chunked', 'chunked x', 'chunked, x', '\xa0chunked', 'chunked\xff', 'trailers', 'chunked\tq'],
];
const BROKEN_CODINGS = [
  '',
  ' ',
  '\x0bchunked',
  'chunked\x0b',
  'chunked\0',
  '\0chunked',
  'chunked\r',
  'chunked\rX: y',
  '\rchunked',
];
const BAD_SIZES = [
  ...[
    '',
    ' ',
    'g',
    '-5',
    '+5',
    '0x5',
    ' 5',
    '\t5',
    '5g',
    '5 5',
    '5,',
    '5.',
    '5\t',
    '5 ',
    '\x005',
    '5\0',
    '\xb2',
    '\xff',
  ],
  ...['1'.padEnd(17, '0'), `${'f'.repeat(17)}5`, '10000000000000005', '100000000000000000005'],
];
const BAD_EXTENSIONS = [
  ';a="b\r\nc"',
  ';a=b\rc',
  ';a=b\nc',
  ';a="\n0\r\n\r\n"',
  ';\0',
  ' \n',
  `;${'a'.repeat(20_000)}`,
  ';a="b',
];

export const CASES: readonly SmugglingCase[] = [
  // Well-formed
  ...METHODS.map((method) =>
    passes(`${method} with a length`, `${request(method, '/api/upload', 'Content-Length: 5')}abcde`, 'abcde', method),
  ),
  ...METHODS.map((method) =>
    passes(`${method} with chunks`, request(method, '/api/upload', CHUNKED) + CHUNKS, 'abcde', method),
  ),
  passes('no body', post(), ''),
  passes('length 0', post('Content-Length: 0'), ''),
  passes('leading zeros of a length', `${post('Content-Length: 005')}abcde`, 'abcde'),
  passes('no chunk but the last', `${post(CHUNKED)}0\r\n\r\n`, ''),
  passes('a request hidden in a body with a length', post('Content-Length: LENGTH') + HIDDEN, HIDDEN),
  passes('a request hidden in a chunk', `${post(CHUNKED)}HEX\r\n${HIDDEN}\r\n0\r\n\r\n`, HIDDEN),
  passes('chunks hidden in a body with a length', `${post('Content-Length: 15')}${CHUNKS}`, CHUNKS),
  passes('a last chunk hidden in a chunk', `${post(CHUNKED)}f\r\n${CHUNKS}\r\n0\r\n\r\n`, CHUNKS),
  passes('leading zeros of a chunk size', `${post(CHUNKED)}0005\r\nabcde\r\n000\r\n\r\n`, 'abcde'),
  passes('a chunk size in capitals', `${post(CHUNKED)}A\r\nabcdeabcde\r\n0\r\n\r\n`, 'abcdeabcde'),
  passes('chunk extensions', `${post(CHUNKED)}5;a=b;c="d; e";f\r\nabcde\r\n0;x\r\n\r\n`, 'abcde'),
  passes(
    'trailers with names of ours',
    `${post(CHUNKED)}5\r\nabcde\r\n0\r\nX-Tollgate-Customer: evil\r\nAuthorization: Bearer evil\r\nHost: evil\r\n\r\n`,
    'abcde',
  ),
  ...SAME_CODINGS.map((coding) =>
    passes(`Transfer-Encoding: ${JSON.stringify(coding)}`, post(`Transfer-Encoding:${coding}`) + CHUNKS, 'abcde'),
  ),
  ...['content-length', 'Content-Length, close', 'x, content-length'].map((named) => ({
    ...passes(`Connection: ${named}`, `${post('Content-Length: 5', `Connection: ${named}`)}abcde`, 'abcde'),
    ...(named.includes('close') && {
      seen: [{ method: 'POST', target: '/api/upload', content: 'abcde' }],
      statuses: [200],
    }),
  })),
  passes('Connection: transfer-encoding', post(CHUNKED, 'Connection: transfer-encoding') + CHUNKS, 'abcde'),
  passes(
    'Connection: content-type, host, authorization',
    `${post('Content-Length: 5', 'Connection: host, authorization')}abcde`,
    'abcde',
  ),
  passes(
    'names that only look like framing',
    post('Content_Length: 5', 'Content.Length: 5', 'X-Content-Length: 5'),
    '',
  ),

  // Ambiguous
  ...['0', '5', '15', '-1', ''].flatMap((length) => {
    const fields = [`Content-Length: ${length}`, CHUNKED];
    return [
      refused(`length ${length}, chunked`, post(...fields) + CHUNKS),
      refused(`chunked, length ${length}`, post(...fields.toReversed()) + CHUNKS),
    ];
  }),
  ...['0', '5', '6', '05', ''].flatMap((length) => [
    refused(`length 5, then ${length}`, `${post('Content-Length: 5', `Content-Length: ${length}`)}abcde`),
    refused(`length ${length}, then 5`, `${post(`content-length: ${length}`, 'Content-Length: 5')}abcde`),
  ]),
  ...[
    '5, 5',
    '5,5',
    '5, 6',
    '+5',
    '-5',
    '5 5',
    '0x5',
    '5.0',
    '5e0',
    '',
    ' ',
    '"5"',
    '5\x0b',
    '\xb2',
    'five',
    '99999999999999999999',
  ].map((length) => refused(`length ${JSON.stringify(length)}`, `${post(`Content-Length: ${length}`)}abcde`)),
  refused('space before the colon of a length', `${post('Content-Length : 5')}abcde`),
  refused('space before the colon of a coding', post('Transfer-Encoding : chunked') + CHUNKS),
  refused('a folded length', `${post('Content-Length:\r\n 5')}abcde`),
  refused('a folded coding', post('Transfer-Encoding:\r\n chunked') + CHUNKS),
  refused('a coding folded behind another field', post('X: y\r\n Transfer-Encoding: chunked') + CHUNKS),
  refused('a line end of LF before a coding', post(`X: y\n${CHUNKED}`) + CHUNKS),
  ...BROKEN_CODINGS.map((coding) =>
    refused(`Transfer-Encoding: ${JSON.stringify(coding)}`, post(`Transfer-Encoding: ${coding}`) + CHUNKS),
  ),

  // HTTP/1.0
  refused('a coding in HTTP/1.0', old(post(CHUNKED)) + CHUNKS),
  refused('a coding in HTTP/1.0 that is kept', old(post(CHUNKED, 'Connection: keep-alive')) + CHUNKS),
  ends('a length in HTTP/1.0', `${old(post('Content-Length: 5'))}abcde`, 'abcde', [200]),
  passes(
    'a length in HTTP/1.0 that is kept',
    `${old(post('Content-Length: 5', 'Connection: keep-alive'))}abcde`,
    'abcde',
  ),

  // Chunks
  ...BAD_SIZES.map((size) =>
    refused(`chunk size ${JSON.stringify(size)}`, `${post(CHUNKED)}${size}\r\nabcde\r\n0\r\n\r\n`),
  ),
  ...BAD_EXTENSIONS.map((extension) =>
    refused(
      `chunk extension ${JSON.stringify(extension).slice(0, 30)}`,
      `${post(CHUNKED)}5${extension}\r\nabcde\r\n0\r\n\r\n`,
    ),
  ),
  refused(
    'a chunk of more bytes than the client sends',
    `${post(CHUNKED)}${'f'.repeat(16)}\r\nabcde\r\n0\r\n\r\n`,
    408,
  ),
  refused('a bare LF behind a chunk size', `${post(CHUNKED)}5\nabcde\r\n0\r\n\r\n`),
  refused('a bare CR behind a chunk size', `${post(CHUNKED)}5\rabcde\r\n0\r\n\r\n`),
  refused('a bare LF behind a chunk', `${post(CHUNKED)}5\r\nabcde\n0\r\n\r\n`),
  refused('a bare CR behind a chunk', `${post(CHUNKED)}5\r\nabcde\r0\r\n\r\n`),
  refused('two line ends behind a chunk size', `${post(CHUNKED)}5\r\n\r\nabcde\r\n0\r\n\r\n`),
  refused('nothing behind a chunk', `${post(CHUNKED)}5\r\nabcde0\r\n\r\n`),
  refused('a chunk longer than its size', `${post(CHUNKED)}4\r\nabcde\r\n0\r\n\r\n`),
  refused('a chunk shorter than its size', `${post(CHUNKED)}7\r\nabcde\r\n0\r\n\r\n`),
  refused('a bare LF behind the last chunk', `${post(CHUNKED)}5\r\nabcde\r\n0\n\r\n`),
  refused('a bare LF at the end', `${post(CHUNKED)}5\r\nabcde\r\n0\r\n\n`),
  refused('a bare CR at the end', `${post(CHUNKED)}5\r\nabcde\r\n0\r\n\r`),
  ...['Content-Length: 9', 'Content-Length: 5', CHUNKED, 'Transfer-Encoding: x'].map((field) =>
    refused(`trailer ${field}`, `${post(CHUNKED)}5\r\nabcde\r\n0\r\n${field}\r\n\r\n`),
  ),
  refused('a trailer without a colon', `${post(CHUNKED)}5\r\nabcde\r\n0\r\nX\r\n\r\n`),
  refused('a folded trailer', `${post(CHUNKED)}5\r\nabcde\r\n0\r\nX: y\r\n z\r\n\r\n`),
  refused('a trailer with NUL', `${post(CHUNKED)}5\r\nabcde\r\n0\r\nX: \0\r\n\r\n`),
  // The request line that follows is a trailer without a colon.
  refused('no line end behind the last chunk', `${post(CHUNKED)}5\r\nabcde\r\n0\r\n`),

  // Longer than what is buffered: the backend has received the beginning
  passes('a request hidden behind 16 KiB with a length', `${post(`Content-Length: ${LONG.length}`)}${LONG}`, LONG),
  passes('a request hidden behind 16 KiB in a chunk', `${post(CHUNKED)}${LONG_CHUNK}0\r\n\r\n`, LONG),
  refused('a chunk size that is none behind 16 KiB', `${post(CHUNKED)}${LONG_CHUNK}g\r\n`),
  refused('a bare LF behind 16 KiB', `${post(CHUNKED)}${LONG_CHUNK}0\n\r\n`),
  refused('a trailer with a length behind 16 KiB', `${post(CHUNKED)}${LONG_CHUNK}0\r\nContent-Length: 0\r\n\r\n`),

  // Other than announced
  ends('a body longer than announced', `${post('Content-Length: 5')}abcdef\r\n`, 'abcde'),
  ends('a line of garbage behind a chunked body', `${post(CHUNKED)}${CHUNKS}\0\r\n`, 'abcde'),
  ends('chunks without a coding', post() + CHUNKS, ''),
  ends(
    'chunks with a coding of another name',
    post('Transfer_Encoding: chunked', 'X-Transfer-Encoding: chunked') + CHUNKS,
    '',
  ),

  // Bodies of GET and HEAD, and of methods that are not allowed
  ...['Content-Length: 5', CHUNKED, 'Content-Length: 00'].map((field) =>
    refused(`GET, ${field}`, request('GET', '/api/upload', field) + CHUNKS),
  ),
  refused('POST to a path without a route', `${post('Content-Length: 5').replace('/api/upload', '/none')}abcde`, 404),
  refused(
    'POST with an unknown key',
    `${post('Content-Length: 50000').replace('Bearer KEY', 'Bearer unknown-key')}${HIDDEN}`,
    401,
  ),
  refused('POST beyond the limit', post('Content-Length: 9999999999') + HIDDEN, 413),
  ...OTHER_CODINGS.map((coding) =>
    refused(
      `Transfer-Encoding: ${JSON.stringify(coding)}`,
      post(`Transfer-Encoding: ${coding}`) + CHUNKS,
      coding.startsWith('chunked,') ? 400 : 501,
    ),
  ),
  ...['gzip', 'identity', 'x'].flatMap((coding) => [
    refused(`${coding}, then chunked`, post(`Transfer-Encoding: ${coding}`, CHUNKED) + CHUNKS, 501),
    refused(`chunked, then ${coding}`, post(CHUNKED, `Transfer-Encoding: ${coding}`) + CHUNKS),
  ]),
  refused('chunked twice', post(CHUNKED, CHUNKED) + CHUNKS),

  // Expect
  passes('Expect with a body that does not wait', `${post('Content-Length: 5', 'Expect: 100-continue')}abcde`, 'abcde'),
  passes('Expect with chunks that do not wait', post(CHUNKED, 'Expect: 100-continue') + CHUNKS, 'abcde'),
  ends('Expect without a body', post('Expect: 100-continue'), '', [200]),
  ends('Expect with length 0', post('Content-Length: 0', 'Expect: 100-continue'), '', [200]),
  passes(
    'Expect in HTTP/1.0',
    `${old(post('Content-Length: 5', 'Expect: 100-continue', 'Connection: keep-alive'))}abcde`,
    'abcde',
  ),
  refused(
    'Expect with a key that is unknown',
    `${post('Content-Length: 50000', 'Expect: 100-continue').replace('Bearer KEY', 'Bearer unknown-key')}`,
    401,
  ),
  refused('Expect beyond the limit', post('Content-Length: 9999999999', 'Expect: 100-continue'), 413),
  refused(
    'Expect on GET with a body',
    `${request('GET', '/api/upload', 'Content-Length: 5', 'Expect: 100-continue')}abcde`,
  ),
  ...['200-ok', '100-continue, 100-continue', '100-continue;x', 'x'].map((value) =>
    refused(`Expect: ${value}`, `${post('Content-Length: 5', `Expect: ${value}`)}abcde`, 417),
  ),
];
