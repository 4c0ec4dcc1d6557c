/** Request bytes to try, made by chance from a seed: the same seed and number give the same bytes. */

/** A number from 0 to before 1. */
type Chance = () => number;

/** What is sent over one connection. */
export interface Case {
  /** In packets of their own, each character a byte. */
  readonly pieces: readonly string[];
  /** Whether the caller resets the connection as soon as something comes back. */
  readonly resets: boolean;
}

/** The valid key; the gateway under test knows it. */
export const FUZZ_KEY = 'fuzz-key-0123456789';

/** Mulberry32: small, and good enough to vary bytes. */
function createChance(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

const FUZZ_UPLOAD = `POST /v1/conversations HTTP/1.1\r\nHost: api.example\r\nAuthorization: Bearer ${FUZZ_KEY}\r\n`;
const REQUEST = ['GET /v1/conversations HTTP/1.1', 'Host: api.example', `Authorization: Bearer ${FUZZ_KEY}`];

function request(...lines: string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** What is mutated: requests that are answered, and requests that are refused, each for its own reason. */
const SAMPLES = [
  request(...REQUEST),
  request(...REQUEST, 'Connection: close'),
  request(...REQUEST, 'X-A: 1', 'Cookie: a=b', 'Accept: */*', 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-01'),
  request(...REQUEST, 'Content-Length: 0'),
  request(...REQUEST, 'Expect: 100-continue'),
  request(...REQUEST, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
  request(
    ...REQUEST,
    'X-Tollgate-Customer: evil',
    'X-Forwarded-For: 192.0.2.1',
    'Forwarded: for=192.0.2.1',
    'Via: 1.1 a',
  ),
  request(...REQUEST).replace('GET', 'HEAD'),
  request(...REQUEST).replace('HTTP/1.1', 'HTTP/1.0'),
  request(...REQUEST, 'Connection: keep-alive').replace('HTTP/1.1', 'HTTP/1.0'),
  request(...REQUEST).replace('/v1/conversations', '/api/v1/conversations/a%20b?c=d&e=%2F'),
  request(...REQUEST).replace('/v1/', 'http://h.example:80/v1/'),
  `${request(...REQUEST, 'Content-Length: 5')}abcde`,
  `${request(...REQUEST, 'Transfer-Encoding: chunked')}5;a=b\r\nabcde\r\n0\r\nX-T: 1\r\n\r\n`.replace('GET', 'POST'),
  ...[
    `${FUZZ_UPLOAD}Content-Length: 5\r\n\r\nabcde`,
    `${FUZZ_UPLOAD}Expect: 100-continue\r\nContent-Length: 5\r\n\r\nabcde`,
  ],
  `${FUZZ_UPLOAD}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n3;a="b"\r\nfgh\r\n0\r\n\r\n`,
  `${FUZZ_UPLOAD}Transfer-Encoding: chunked\r\n\r\n27\r\nGET /v1/conversations HTTP/1.1\r\nHost: a\r\n\r\n0\r\n\r\n`,
  `${FUZZ_UPLOAD}Content-Length: 20000\r\n\r\n${'0\r\n\r\n'.repeat(4000)}`,
  `${FUZZ_UPLOAD}Transfer-Encoding: chunked\r\n\r\n${`1388\r\n${'a\r\n0\r\n'.repeat(833)}\r\n\r\n`.repeat(5)}0\r\n\r\n`,
  request('CONNECT api.example:443 HTTP/1.1', 'Host: api.example'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
];

const TOKENS = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    '\n\n',
    ' ',
    '\t',
    '\0',
    ':',
    ': ',
    ',',
    ';',
    '/',
    '//',
    '\\',
    '?',
    '#',
    '%',
    '%2e',
    '%2f',
    '%00',
    '..',
    '*',
    '@',
  ],
  ...[
    '\x0b',
    '\x0c',
    '\x7f',
    '\x80',
    '\xa0',
    '\xff',
    '\xc0\xaf',
    '"',
    '{',
    '[::1]',
    '0',
    '-1',
    '+1',
    '0x1',
    '4294967296',
    '99999999999999999999',
  ],
  ...[
    'GET ',
    'HEAD ',
    'POST ',
    'CONNECT ',
    'PRI * ',
    'FOO ',
    ' HTTP/1.1',
    ' HTTP/1.0',
    ' HTTP/2.0',
    ' HTTP/0.9',
    ' RTSP/1.0',
    'http://',
    'http://a:x',
    'http://[',
    'https://u@h',
  ],
  ...[
    'Host: b\r\n',
    'Host:\r\n',
    'Content-Length: 0\r\n',
    'Content-Length: 7\r\n',
    'Content-Length: 5\r\n',
    'Content-Length: 300\r\n',
    'Content-Length: 0, 0\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: x\r\n',
  ],
  ...[
    'Transfer_Encoding: chunked\r\n',
    'Connection: close\r\n',
    'Connection: x-a, host, via\r\n',
    'Upgrade: websocket\r\n',
    'Connection: upgrade\r\n',
    'Expect: 100-continue\r\n',
    'Expect: x\r\n',
    'TE: trailers\r\n',
  ],
  ...[
    'Authorization: Bearer x\r\n',
    'Authorization: Basic eDp5\r\n',
    'X_Tollgate_Plan: x\r\n',
    ' folded\r\n',
    ': empty\r\n',
    'no colon\r\n',
    'X-Request-Id: a b\r\n',
  ],
  ...[
    '0\r\n\r\n',
    '5\r\nabcde\r\n',
    '5;a=b\r\nabcde\r\n',
    ';a="b',
    '\r\n0\r\n\r\n',
    'Trailer: X\r\n',
    'PUT ',
    'ffffffffffffffff\r\n',
    'G',
    'H',
    '/v1/conversations',
    '/api/v1/usage',
    '/metrics',
    '__proto__: 1\r\n',
    'constructor: 1\r\n',
  ],
];

function integer(chance: Chance, below: number): number {
  return Math.floor(chance() * below);
}

function pick<T>(chance: Chance, from: readonly [T, ...T[]] | readonly T[]): T {
  return from[integer(chance, from.length)] as T;
}

type Mutation = (bytes: string, chance: Chance) => string;

const MUTATIONS: readonly Mutation[] = [
  // a token between any two bytes, and more of them, for they are the most telling
  ...Array<Mutation>(4).fill((bytes, chance) => {
    const at = integer(chance, bytes.length + 1);
    return bytes.slice(0, at) + pick(chance, TOKENS) + bytes.slice(at);
  }),
  // a token between lines
  ...Array<Mutation>(2).fill((bytes, chance) => {
    const lines = bytes.split('\r\n');
    lines.splice(1 + integer(chance, lines.length), 0, pick(chance, TOKENS).trimEnd());
    return lines.join('\r\n');
  }),
  // another byte
  (bytes, chance) => {
    const at = integer(chance, bytes.length);
    return bytes.slice(0, at) + String.fromCharCode(integer(chance, 256)) + bytes.slice(at + 1);
  },
  // a bit
  (bytes, chance) => {
    const at = integer(chance, bytes.length);
    return (
      bytes.slice(0, at) +
      String.fromCharCode(((bytes.charCodeAt(at) || 0) ^ (1 << integer(chance, 8))) & 0xff) +
      bytes.slice(at + 1)
    );
  },
  // something left out
  (bytes, chance) => {
    const at = integer(chance, bytes.length);
    return bytes.slice(0, at) + bytes.slice(at + 1 + integer(chance, 8));
  },
  // something twice
  (bytes, chance) => {
    const at = integer(chance, bytes.length);
    const end = at + 1 + integer(chance, 40);
    return bytes.slice(0, end) + bytes.slice(at, end) + bytes.slice(end);
  },
  // lines in another order
  (bytes, chance) => {
    const lines = bytes.split('\r\n');
    const [a, b] = [integer(chance, lines.length), integer(chance, lines.length)];
    [lines[a], lines[b]] = [lines[b] ?? '', lines[a] ?? ''];
    return lines.join('\r\n');
  },
  // cut short
  (bytes, chance) => bytes.slice(0, integer(chance, bytes.length)),
  // one byte very often
  (bytes, chance) => {
    const at = integer(chance, bytes.length);
    return bytes.slice(0, at) + bytes.charAt(at).repeat(2 ** integer(chance, 18)) + bytes.slice(at);
  },
  // the case of a word
  (bytes, chance) => {
    const at = integer(chance, bytes.length);
    const end = at + integer(chance, 20);
    const part = bytes.slice(at, end);
    return bytes.slice(0, at) + (chance() < 0.5 ? part.toUpperCase() : part.toLowerCase()) + bytes.slice(end);
  },
  // another request behind it
  (bytes, chance) => bytes + pick(chance, SAMPLES),
];

/** The case with this number, of this seed. */
export function createCase(seed: number, number: number): Case {
  const chance = createChance(seed ^ Math.imul(number + 1, 0x9e3779b1));
  let bytes = pick(chance, SAMPLES);
  for (let left = integer(chance, 5); left >= 0; left--) bytes = pick(chance, MUTATIONS)(bytes, chance);
  const resets = chance() < 0.05;
  if (chance() < 0.6) return { pieces: [bytes], resets };
  const at = integer(chance, bytes.length + 1);
  return { pieces: [bytes.slice(0, at), bytes.slice(at)], resets };
}
