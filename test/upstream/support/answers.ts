import fc from 'fast-check';

/** An answer as it goes over the wire (Latin-1), and what a reader should make of it. */
export interface SampleAnswer {
  readonly bytes: string;
  /** It answers a HEAD. */
  readonly isHead: boolean;
  readonly status: number;
  /** Flat, values without the white space around them. */
  readonly fields: readonly string[];
  readonly content: string;
}

const LINE_END = '\r\n';
const WHITE_SPACE = fc.constantFrom('', ' ', '\t', '  ', ' \t ');
const NAMES = fc.constantFrom('X-A', 'x-a', 'ETag', 'Set-Cookie', 'DATE', 'Vary', "!#$%&'*+.^_`|~09");
const VALUES = fc.constantFrom(
  '',
  'a',
  'a, b',
  '"x y"',
  'a\tb',
  'caf\xe9',
  '\x80\xff',
  ':',
  'a: b',
  'close',
  'chunked',
);
const CONNECTION_FIELDS = fc.constantFrom(
  ['Connection', 'keep-alive'],
  ['Connection', 'close'],
  ['connection', 'Keep-Alive, X-A'],
  ['Keep-Alive', 'timeout=5, max=100'],
);
const CONTENT = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
});
const INTERIM = fc.constantFrom(
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n',
  'HTTP/1.1 102\r\n\r\n',
);
const REASONS = fc.constantFrom(' OK', ' ', '', ' Not at all', ' caf\xe9', ' a\tb');

const FIELD_LINES = fc.array(
  fc
    .tuple(fc.oneof({ weight: 4, arbitrary: fc.tuple(NAMES, VALUES) }, CONNECTION_FIELDS), WHITE_SPACE, WHITE_SPACE)
    .map(([[name = '', value = ''], before, after]) => ({
      fields: [name, value],
      line: `${name}:${before}${value}${after}`,
    })),
  { maxLength: 4 },
);

const CHUNKS = fc.record({
  pieces: fc.array(
    CONTENT.filter((piece) => piece !== ''),
    { maxLength: 4 },
  ),
  size: fc.constantFrom(
    (length: number) => length.toString(16),
    (length: number) => length.toString(16).toUpperCase(),
    (length: number) => length.toString(16).padStart(4, '0'),
  ),
  extension: fc.constantFrom('', '', ';a', ';a=b', ';a="b c"', ';a=b;c=d'),
  trailers: fc.array(fc.constantFrom('X-T: 1', 'Expires: never', 'x-empty:'), { maxLength: 2 }),
});

interface Framed {
  readonly fields: readonly string[];
  readonly following: string;
  readonly content: string;
  readonly version: string;
}

const WITH_LENGTH = fc.tuple(CONTENT, fc.constantFrom('1.1', '1.0'), fc.constantFrom('', '0', '000')).map(
  ([content, version, zeros]): Framed => ({
    fields: ['Content-Length', `${zeros}${content.length}`],
    following: content,
    content,
    version,
  }),
);
const CHUNKED = fc.tuple(CHUNKS, fc.constantFrom('chunked', 'Chunked')).map(
  ([{ pieces, size, extension, trailers }, coding]): Framed => ({
    fields: ['Transfer-Encoding', coding],
    following: [
      ...pieces.map((piece) => `${size(piece.length)}${extension}${LINE_END}${piece}`),
      ...[`0${extension}`, ...trailers, '', ''],
    ].join(LINE_END),
    content: pieces.join(''),
    version: '1.1',
  }),
);
const UNTIL_CLOSE = fc
  .tuple(CONTENT, fc.constantFrom('1.1', '1.0'))
  .map(([content, version]): Framed => ({ fields: [], following: content, content, version }));
const WITHOUT_CONTENT = fc
  .tuple(
    fc.constantFrom([], ['Content-Length', '0'], ['Content-Length', '7'], ['Transfer-Encoding', 'chunked']),
    fc.constant('1.1'),
  )
  .map(([fields, version]): Framed => ({ fields, following: '', content: '', version }));

const MESSAGES = fc.oneof(
  fc.record({
    isHead: fc.constant(false),
    status: fc.constantFrom(200, 201, 206, 299, 301, 404, 500, 599),
    framed: fc.oneof(WITH_LENGTH, { weight: 2, arbitrary: CHUNKED }, UNTIL_CLOSE),
  }),
  fc.record({ isHead: fc.constant(false), status: fc.constantFrom(204, 304), framed: WITHOUT_CONTENT }),
  fc.record({ isHead: fc.constant(true), status: fc.constantFrom(200, 204, 404), framed: WITHOUT_CONTENT }),
);

/** Answers in good order, of every framing. The connection ends after them. */
export const GOOD_ANSWERS: fc.Arbitrary<SampleAnswer> = fc
  .tuple(fc.array(INTERIM, { maxLength: 2 }), MESSAGES, REASONS, FIELD_LINES, fc.nat(4))
  .map(([interim, { isHead, status, framed }, reason, lines, at]) => {
    const [name, value] = framed.fields;
    const all =
      name === undefined || value === undefined
        ? lines
        : lines.toSpliced(at, 0, { fields: [name, value], line: `${name}: ${value}` });
    const head = [`HTTP/${framed.version} ${status}${reason}`, ...all.map(({ line }) => line)].join(LINE_END);
    return {
      bytes: `${interim.join('')}${head}${LINE_END}${LINE_END}${framed.following}`,
      isHead,
      status,
      fields: all.flatMap(({ fields }) => fields),
      content: framed.content,
    };
  });

/** What makes readers disagree. */
const TROUBLE = fc.constantFrom(
  ...['\r', '\n', '\r\n', '\r\n\r\n', '\n\n', '\0', '\x07', '\x7f', '\x80', ' ', '\t', '\r\n ', '\r\n\t', '\v', '\f'],
  ...['', ':', ';', ',', '=', '"', '\\', '0', '1', '5', '10', 'a', 'F', 'g', 'x', '0x', '+', '-', '.', '/', '%'],
  ...['chunked', 'gzip, ', ', gzip', 'identity', ', chunked', 'close', '100', '101', '204', '304', '1.0', '2.0', '0.9'],
  ...['Content-Length: 3\r\n', 'Content-Length: 0\r\n', 'Content-Length: +3\r\n', 'Content-Length: 3, 3\r\n'],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip\r\n', 'Transfer-Encoding:\r\n', 'Content-Length:\r\n'],
  ...[
    'Content-Length : 3\r\n',
    'Transfer-Encoding : chunked\r\n',
    ' X-A: 1\r\n',
    ': a\r\n',
    'no colon\r\n',
    'X: \0\r\n',
  ],
  ...['Connection: upgrade\r\nUpgrade: h2c\r\n', 'Trailer: X-T\r\n', 'HTTP/1.1 200 OK\r\n\r\n', 'HTTP/1.1 100\r\n\r\n'],
  ...[
    '0\r\n\r\n',
    '3\r\nabc\r\n',
    '5;a\r\n',
    '5 ;a\r\n',
    '5; a\r\n',
    '5 \r\n',
    '3\nabc\n',
    ';a="\r\n"',
    '00000000000000',
  ],
  ...['ffffffffffffffff', 'X-T: 1\r\n', 'X-T : 1\r\n', '\r\n X-T: 1\r\n'],
);

/** The same, where something else stood. */
const EXCHANGES = fc.constantFrom<[string, string]>(
  ['HTTP/1.1', 'HTTP/1.0'],
  ['HTTP/1.1', 'HTTP/2.0'],
  ['HTTP/1.1', 'HTTP/0.9'],
  ['HTTP/1.1 ', 'HTTP/1.1  '],
  ['HTTP/1.1 ', '\r\nHTTP/1.1 '],
  ['200', '101'],
  ['200', '20'],
  ['200', '2000'],
  ['200', '000'],
  ['\r\n', '\n'],
  ['\r\n', '\r'],
  ['\r\n', ' \r\n'],
  ['\r\n', '\n\r'],
  ['\r\n\r\n', '\n\n'],
  [':', ' :'],
  [':', ''],
  [';', ' ;'],
  [';', '; '],
  ['chunked', 'gzip, chunked'],
  ['chunked', 'chunked, chunked'],
  ['chunked', 'chunked;a'],
  ['chunked', 'identity'],
  ['Content-Length: ', 'Content-Length: +'],
  ['Content-Length: ', 'Content-Length: 0x'],
  ['Content-Length: ', 'Content-Length: 1, '],
  ['Content-Length: ', 'Content-Length: 99999999999'],
  ['Content-Length', 'Content_Length'],
);

type Edit = (bytes: string) => string;

/** In parts of the whole. All places are as likely as each other. */
const PLACE = fc.noBias(fc.nat(9_999)).map((part) => part / 10_000);

const EDITS: fc.Arbitrary<Edit> = fc.oneof(
  fc.tuple(PLACE, fc.nat(4), TROUBLE).map(
    ([place, removed, added]): Edit =>
      (bytes) => {
        const at = Math.floor(place * bytes.length);
        return bytes.slice(0, at) + added + bytes.slice(at + removed);
      },
  ),
  fc.tuple(PLACE, fc.integer({ min: 1, max: 4 })).map(
    ([place, length]): Edit =>
      (bytes) => {
        const at = Math.floor(place * bytes.length);
        return bytes.slice(0, at + length) + bytes.slice(at);
      },
  ),
  fc.tuple(PLACE, EXCHANGES).map(
    ([place, [from, to]]): Edit =>
      (bytes) => {
        const parts = bytes.split(from);
        const at = 1 + Math.floor(place * (parts.length - 1));
        return parts.slice(0, at).join(from) + (at < parts.length ? to : '') + parts.slice(at).join(from);
      },
  ),
);

/** Answers that are nearly in good order: what they are to be read as is for an oracle to say. */
export const DAMAGED_ANSWERS: fc.Arbitrary<Pick<SampleAnswer, 'bytes' | 'isHead'>> = fc
  .tuple(GOOD_ANSWERS, fc.array(EDITS, { minLength: 1, maxLength: 3 }))
  .map(([{ bytes, isHead }, edits]) => ({ bytes: edits.reduce((edited, edit) => edit(edited), bytes), isHead }));

/** Bytes of no kind, bytes that look like an answer here and there, and bytes of no kind after a head in good order. */
export const ANY_BYTES: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('', 'HTTP/1.1 200 OK\r\n', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'),
    fc.array(fc.oneof(CONTENT, TROUBLE), { maxLength: 12 }),
  )
  .map(([head, rest]) => head + rest.join(''));
