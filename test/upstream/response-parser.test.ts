import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidResponseError, ResponseParser } from '../../src/upstream/http1/response-parser.ts';
import { ANY_BYTES, DAMAGED_ANSWERS, GOOD_ANSWERS } from './support/answers.ts';
import { cutAt, NotingSink, type ReadOptions, readAnswer, readPieces } from './support/response-reading.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const EMPTY = 'Content-Length: 0\r\n\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const END = '0\r\n\r\n';
const HEAD: ReadOptions = { isHead: true };
const CLOSES: ReadOptions = { closes: true };

describe('heads', () => {
  test.each<[string, string, number, string, string[]]>([
    ['a reason phrase', `HTTP/1.1 404 Not Found\r\n${EMPTY}`, 404, 'Not Found', ['Content-Length', '0']],
    ['an empty reason phrase', `HTTP/1.1 200 \r\n${EMPTY}`, 200, '', ['Content-Length', '0']],
    ['no reason phrase', `HTTP/1.1 200\r\n${EMPTY}`, 200, '', ['Content-Length', '0']],
    ['a reason phrase of any bytes', `HTTP/1.1 200 \x07\xe9\r\n${EMPTY}`, 200, '\x07\xe9', ['Content-Length', '0']],
    ['HTTP/1.0', `HTTP/1.0 200 OK\r\n${EMPTY}`, 200, 'OK', ['Content-Length', '0']],
    ['no field', 'HTTP/1.1 204 No Content\r\n\r\n', 204, 'No Content', []],
  ])('%s', (_, bytes, status, reason, fields) => {
    expect(readAnswer(bytes)).toMatchObject({ outcome: 'whole', status, reason, fields, content: '' });
  });

  test.each<[string, string, string]>([
    ['an empty value', 'X-A:\r\n', ''],
    ['a value of white space', 'X-A: \t \r\n', ''],
    ['white space around the value', 'X-A: \t a \t b\t \r\n', 'a \t b'],
    ['no white space', 'X-A:a\r\n', 'a'],
    ['colons in the value', 'X-A::a: b\r\n', ':a: b'],
    ['obs-text', 'X-A: \x80\xff\r\n', '\x80\xff'],
    ['another length, underscored', 'Content_Length: 5\r\n', '5'],
  ])('fields as they came: %s', (_, line, value) => {
    const name = line.slice(0, line.indexOf(':'));
    expect(readAnswer(`${OK}${line}${EMPTY}`).fields).toEqual([name, value, 'Content-Length', '0']);
  });

  test('every character of a token may stand in a name', () => {
    const name = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    expect(readAnswer(`${OK}${name}: a\r\n${EMPTY}`).fields[0]).toBe(name);
  });

  test.each([
    ['nothing but an end', '\r\n\r\n'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['empty lines before it', `\r\n${OK}${EMPTY}`],
    ['a space before it', ` ${OK}${EMPTY}`],
    ['HTTP/0.9', `HTTP/0.9 200 OK\r\n${EMPTY}`],
    ['HTTP/1.2', `HTTP/1.2 200 OK\r\n${EMPTY}`],
    ['HTTP/2.0', `HTTP/2.0 200 OK\r\n${EMPTY}`],
    ['HTTP/1', `HTTP/1 200 OK\r\n${EMPTY}`],
    ['HTTP/11', `HTTP/11 200 OK\r\n${EMPTY}`],
    ['http in lower case', `http/1.1 200 OK\r\n${EMPTY}`],
    ['two digits of status', `HTTP/1.1 20 OK\r\n${EMPTY}`],
    ['four digits of status', `HTTP/1.1 2000 OK\r\n${EMPTY}`],
    ['no status', `HTTP/1.1\r\n${EMPTY}`],
    ['two spaces before the status', `HTTP/1.1  200 OK\r\n${EMPTY}`],
    ['a tab before the status', `HTTP/1.1\t200 OK\r\n${EMPTY}`],
    ['a tab after the status', `HTTP/1.1 200\tOK\r\n${EMPTY}`],
    ['a bare LF after the status line', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n'],
    ['a bare LF after a field', `${OK}X-A: 1\n${EMPTY}`],
    ['a bare CR in the reason phrase', `HTTP/1.1 200 O\rK\r\n${EMPTY}`],
    ['a bare CR in a value', `${OK}X-A: 1\r2\r\n${EMPTY}`],
    ['a bare CR before a line end', `${OK}X-A: 1\r\r\n${EMPTY}`],
    ['NUL in a value', `${OK}X-A: a\0b\r\n${EMPTY}`],
    ['NUL in a name', `${OK}X\0A: a\r\n${EMPTY}`],
    ['DEL in a value', `${OK}X-A: a\x7fb\r\n${EMPTY}`],
    ['another control in a value', `${OK}X-A: a\x0bb\r\n${EMPTY}`],
    ['a folded field, by a space', `${OK}X-A: 1\r\n 2\r\n${EMPTY}`],
    ['a folded field, by a tab', `${OK}X-A: 1\r\n\t2\r\n${EMPTY}`],
    ['a fold right after the status line', `${OK} X-A: 1\r\n${EMPTY}`],
    ['no colon', `${OK}X-A\r\n${EMPTY}`],
    ['a space before the colon', `${OK}X-A : 1\r\n${EMPTY}`],
    ['a tab before the colon', `${OK}X-A\t: 1\r\n${EMPTY}`],
    ['an empty name', `${OK}: 1\r\n${EMPTY}`],
    ['obs-text in a name', `${OK}X-\xe9: 1\r\n${EMPTY}`],
    ['a space in a name', `${OK}X A: 1\r\n${EMPTY}`],
    ...['"', '(', ')', ',', '/', ';', '<', '=', '>', '?', '@', '[', '\\', ']', '{', '}'].map(
      (delimiter): [string, string] => [`${delimiter} in a name`, `${OK}X${delimiter}A: 1\r\n${EMPTY}`],
    ),
  ])('refused: %s', (_, bytes) => {
    expect(readAnswer(bytes)).toMatchObject({ outcome: 'refused', status: 0 });
    expect(readPieces([...bytes])).toMatchObject({ outcome: 'refused', status: 0 });
  });
});

describe('interim responses', () => {
  test.each([
    ['one', `HTTP/1.1 100 Continue\r\n\r\n${OK}X-A: 1\r\n${EMPTY}`],
    ['several', `HTTP/1.1 102\r\n\r\nHTTP/1.1 103 Early\r\nX-B: 2\r\n\r\nHTTP/1.1 199\r\n\r\n${OK}X-A: 1\r\n${EMPTY}`],
  ])('%s in front of a response, fields and all, are passed over', (_, bytes) => {
    expect(readAnswer(bytes)).toMatchObject({
      outcome: 'whole',
      status: 200,
      fields: ['X-A', '1', 'Content-Length', '0'],
    });
  });

  test('one alone is no response', () => {
    expect(readAnswer('HTTP/1.1 100 Continue\r\n\r\n', CLOSES).outcome).toBe('unfinished');
  });

  test('closing is announced by the final response', () => {
    const { mayPersist } = readAnswer(`HTTP/1.1 103 Early\r\nConnection: close\r\n\r\n${OK}${EMPTY}`);
    expect(mayPersist).toBe(true);
  });

  test.each([
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['101 without more', `HTTP/1.1 101\r\n\r\n${OK}${EMPTY}`],
    ['one in HTTP/1.0', `HTTP/1.0 100 Continue\r\n\r\n${OK}${EMPTY}`],
    ['one with a length', `HTTP/1.1 103 Early\r\nContent-Length: 19\r\n\r\n${OK}${EMPTY}`],
    ['one with a length that is none', `HTTP/1.1 103 Early\r\nContent-Length: 3, 3\r\n\r\n${OK}${EMPTY}`],
    ['one with a coding', `HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\n${OK}${EMPTY}`],
    ['a broken one', `HTTP/1.1 103 Early\r\nX A: 1\r\n\r\n${OK}${EMPTY}`],
    ['an empty line after it', `HTTP/1.1 100 Continue\r\n\r\n\r\n${OK}${EMPTY}`],
  ])('refused: %s', (_, bytes) => {
    expect(readAnswer(bytes)).toMatchObject({ outcome: 'refused', status: 0 });
  });
});

describe('content', () => {
  test.each<[string, string, string, ReadOptions?]>([
    ['of a length', `${OK}Content-Length: 5\r\n\r\na\r\n\0b`, 'a\r\n\0b'],
    ['of a length with zeros before', `${OK}Content-Length: 0005\r\n\r\nabcde`, 'abcde'],
    ['of a length, in HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nabcde', 'abcde'],
    ['of no length', `${OK}${EMPTY}`, ''],
    ['until the end', `${OK}\r\nabc${END}`, `abc${END}`, CLOSES],
    ['until the end, in HTTP/1.0', 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc', 'abc', CLOSES],
    ['until an end at once', `${OK}\r\n`, '', CLOSES],
    ['in no chunk', `${CHUNKED}${END}`, ''],
    ['in one chunk', `${CHUNKED}5\r\na\r\n\0b\r\n${END}`, 'a\r\n\0b'],
    ['in several chunks', `${CHUNKED}1\r\na\r\n2\r\nbc\r\n${END}`, 'abc'],
    ['in a chunk of hexadecimal size', `${CHUNKED}1a\r\n${'x'.repeat(26)}\r\n${END}`, 'x'.repeat(26)],
    ['in a chunk of a size in upper case', `${CHUNKED}1A\r\n${'x'.repeat(26)}\r\n${END}`, 'x'.repeat(26)],
    ['in a chunk of a size with zeros before', `${CHUNKED}000000000005\r\nabcde\r\n000\r\n\r\n`, 'abcde'],
    ['in chunks, said in another case', `${OK}TRANSFER-ENCODING: Chunked\r\n\r\n1\r\na\r\n${END}`, 'a'],
    ['in chunks with extensions', `${CHUNKED}1;a\r\na\r\n1;a=b;c="d; e\\""\r\nb\r\n0;z\r\n\r\n`, 'ab'],
    ['in chunks with trailers', `${CHUNKED}1\r\na\r\n0\r\nX-T: 1\r\nx-u:\r\n\r\n`, 'a'],
  ])('%s', (_, bytes, content, options) => {
    expect(readAnswer(bytes, options)).toMatchObject({ outcome: 'whole', status: 200, content });
  });

  test('a trailer is no field of the response', () => {
    expect(readAnswer(`${CHUNKED}0\r\nX-T: 1\r\n\r\n`).fields).toEqual(['Transfer-Encoding', 'chunked']);
  });

  test.each<[string, string, ReadOptions?]>([
    ['to a HEAD, of no length', `${OK}Content-Length: 0\r\n\r\n`, HEAD],
    ['to a HEAD, after an interim answer', `HTTP/1.1 100 Continue\r\n\r\n${OK}${EMPTY}`, HEAD],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n'],
  ])('there is none, and the connection persists: %s', (_, bytes, options) => {
    expect(readAnswer(bytes, options)).toMatchObject({ outcome: 'whole', content: '', mayPersist: true });
  });

  test.each<[string, string, ReadOptions?]>([
    ['to a HEAD, without framing', `${OK}\r\n`, HEAD],
    ['to a HEAD, of a length', `${OK}Content-Length: 5\r\n\r\n`, HEAD],
    ['to a HEAD, chunked', CHUNKED, HEAD],
    ['204 of a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n'],
    ['204, chunked', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['304 of a length', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'],
    ['304, chunked', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ])('there is none, but it was announced, so the connection does not persist: %s', (_, bytes, options) => {
    expect(readAnswer(bytes, options)).toMatchObject({ outcome: 'whole', content: '', mayPersist: false });
  });

  test.each([
    ['two equal lengths', 'Content-Length: 5\r\nContent-Length: 5\r\n'],
    ['two lengths', 'Content-Length: 5\r\ncontent-length: 6\r\n'],
    ['a list of equal lengths', 'Content-Length: 5, 5\r\n'],
    ['an empty length', 'Content-Length:\r\n'],
    ['a length with a sign', 'Content-Length: +5\r\n'],
    ['a negative length', 'Content-Length: -5\r\n'],
    ['a hexadecimal length', 'Content-Length: 0x5\r\n'],
    ['a length with letters', 'Content-Length: 5a\r\n'],
    ['a length with a fraction', 'Content-Length: 5.0\r\n'],
    ['a length with an exponent', 'Content-Length: 5e0\r\n'],
    ['a length with a space inside', 'Content-Length: 5 5\r\n'],
    ['a length beyond what numbers hold', `Content-Length: ${'9'.repeat(16)}\r\n`],
    ['a length beyond 64 bits', 'Content-Length: 18446744073709551621\r\n'],
    ['a length, then a coding', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'],
    ['a coding, then a length', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n'],
    ['a coding beside a length of 0', 'Content-Length: 0\r\nTransfer-Encoding: chunked\r\n'],
    ['another coding', 'Transfer-Encoding: gzip\r\n'],
    ['another coding before', 'Transfer-Encoding: gzip, chunked\r\n'],
    ['another coding after', 'Transfer-Encoding: chunked, gzip\r\n'],
    ['no coding', 'Transfer-Encoding:\r\n'],
    ['identity', 'Transfer-Encoding: identity\r\n'],
    ['chunked twice', 'Transfer-Encoding: chunked, chunked\r\n'],
    ['chunked in two fields', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'],
    ['chunked with a parameter', 'Transfer-Encoding: chunked;a=b\r\n'],
    ['chunked in quotes', 'Transfer-Encoding: "chunked"\r\n'],
    ['an empty member of the list', 'Transfer-Encoding: ,chunked\r\n'],
    ['nearly chunked', 'Transfer-Encoding: xchunked\r\n'],
    ['chunked, with another white space', 'Transfer-Encoding: \xa0chunked\r\n'],
  ])('refused, to a HEAD and of a 204 too: %s', (_, framing) => {
    const content = '5\r\nabcde\r\n0\r\n\r\n';
    for (const options of [{}, HEAD, CLOSES]) {
      expect(readAnswer(`${OK}${framing}\r\n${content}`, options)).toMatchObject({ outcome: 'refused', status: 0 });
      expect(readAnswer(`HTTP/1.1 204 Empty\r\n${framing}\r\n`, options).outcome).toBe('refused');
    }
  });

  test('refused: a coding in HTTP/1.0', () => {
    expect(readAnswer(`HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${END}`).outcome).toBe('refused');
  });

  test.each([
    ['no size', '\r\nabc'],
    ['an empty size with an extension', ';a\r\n'],
    ['a prefixed size', '0x5\r\nabcde\r\n'],
    ['a negative size', '-1\r\nabcde\r\n'],
    ['a size with a sign', '+5\r\nabcde\r\n'],
    ['white space before the size', ' 5\r\nabcde\r\n'],
    ['white space after the size', '5 \r\nabcde\r\n'],
    ['a tab after the size', '5\t\r\nabcde\r\n'],
    ['two sizes', '5 5\r\nabcde\r\n'],
    ['a letter beyond f', '5g\r\nabcde\r\n'],
    ['a size beyond what numbers hold', `${'f'.repeat(13)}\r\n`],
    ['a size beyond 64 bits', '10000000000000005\r\nabcde\r\n'],
    ['endless zeros', `${'0'.repeat(13)}5\r\nabcde\r\n`],
    ['a bare LF after the size', '5\nabcde\r\n'],
    ['a bare CR after the size', '5\rabcde\r\n'],
    ['data shorter than its size', '5\r\nabcd\r\n0\r\n\r\n'],
    ['data longer than its size', '5\r\nabcdef\r\n0\r\n\r\n'],
    ['no line end after the data', '5\r\nabcde0\r\n\r\n'],
    ['a bare LF after the data', '5\r\nabcde\n0\r\n\r\n'],
    ['a bare CR after the data', '5\r\nabcde\r0\r\n\r\n'],
    ['an extension without a name', '5;\r\nabcde\r\n'],
    ['an extension without a value', '5;a=\r\nabcde\r\n'],
    ['an extension that is no token', '5;a\\b\r\nabcde\r\n'],
    ['an extension of two values', '5;a=b=c\r\nabcde\r\n'],
    ['an open quote in an extension', '5;a="b\r\nabcde\r\n'],
    ['something after a quoted value', '5;a="b"c\r\nabcde\r\n'],
    ['a bare LF in an extension', '5;a\nb\r\nabcde\r\n'],
    ['a line end in a quoted value', '5;a="\r\nb"\r\nabcde\r\n'],
    ['a bare CR in an extension', '5;a\rb\r\nabcde\r\n'],
    ['NUL in an extension', '5;a\0\r\nabcde\r\n'],
    ['DEL in an extension', '5;a="\x7f"\r\nabcde\r\n'],
    ['a trailer without colon', '0\r\nX-T\r\n\r\n'],
    ['a trailer without name', '0\r\n: 1\r\n\r\n'],
    ['a space before the colon of a trailer', '0\r\nX-T : 1\r\n\r\n'],
    ['a folded trailer', '0\r\nX-T: 1\r\n 2\r\n\r\n'],
    ['a space before the trailers', '0\r\n X-T: 1\r\n\r\n'],
    ['another answer for a trailer', `0\r\n${OK}${EMPTY}`],
    ['a bare LF in a trailer', '0\r\nX-T: 1\nX-U: 2\r\n\r\n'],
    ['a bare CR in a trailer', '0\r\nX-T: 1\r2\r\n\r\n'],
    ['NUL in a trailer', '0\r\nX-T: \0\r\n\r\n'],
    ['DEL in a trailer', '0\r\nX-T: \x7f\r\n\r\n'],
    ['a bare CR for the last line', '0\r\n\rX'],
  ])('refused among chunks, however it comes: %s', (_, chunks) => {
    const bytes = `${CHUNKED}${chunks}`;
    expect(readAnswer(bytes)).toMatchObject({ outcome: 'refused', status: 200 });
    expect(readPieces([...bytes])).toMatchObject({ outcome: 'refused', status: 200 });
  });
});

test.each([
  ['for all line ends', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
  ['after a field', `${OK}Content-Length: 0\n\n`],
  ['for the empty line', `${OK}Content-Length: 0\r\n\n`],
  ['at once', '\n'],
  ['after an extension', `${CHUNKED}5;a\nabcde\n0\n\n`],
  ['after a trailer', `${CHUNKED}0\r\nX-T: 1\n\n`],
  ['for the last line', `${CHUNKED}0\r\n\n`],
])('a bare LF is refused on arrival, without waiting for the rest: %s', (_, bytes) => {
  expect(readAnswer(bytes).outcome).toBe('refused');
  expect(readPieces([...bytes]).outcome).toBe('refused');
});

describe('limits', () => {
  const LIMIT = 200;
  const LIMITED: ReadOptions = { maxHeaderBytes: LIMIT };

  /** A head of so many bytes, without the empty line after it. */
  function headOf(length: number): string {
    const head = 'HTTP/1.1 204 Empty\r\nX-A: ';
    return `${head}${'a'.repeat(length - head.length)}`;
  }

  test('a head may be as long as the limit, however it is cut', () => {
    const bytes = `${headOf(LIMIT)}\r\n\r\n`;
    for (let at = 0; at <= bytes.length; at++) expect(readPieces(cutAt(bytes, [at]), LIMITED).outcome).toBe('whole');
    expect(readPieces([...bytes], LIMITED).outcome).toBe('whole');
  });

  test('a longer head is refused, however it is cut', () => {
    const bytes = `${headOf(LIMIT + 1)}\r\n\r\n`;
    for (let at = 0; at <= bytes.length; at++) expect(readPieces(cutAt(bytes, [at]), LIMITED).outcome).toBe('refused');
    expect(readPieces([...bytes], LIMITED).outcome).toBe('refused');
  });

  test('an endless head is refused once it is longer than the limit, not later', () => {
    expect(readPieces([...headOf(LIMIT + 4)], LIMITED).outcome).toBe('refused');
  });

  test('all interim responses together may be as long as a head', () => {
    const interim = `HTTP/1.1 103 Early\r\nX-A: ${'a'.repeat(LIMIT / 2 - 29)}\r\n\r\n`;
    expect(readAnswer(`${interim.repeat(2)}${headOf(LIMIT)}\r\n\r\n`, LIMITED).outcome).toBe('whole');
    expect(readAnswer(`${interim.repeat(3)}${headOf(LIMIT)}\r\n\r\n`, LIMITED).outcome).toBe('refused');
    expect(readPieces([...interim.repeat(3)], LIMITED).outcome).toBe('refused');
  });

  test('a hundred interim responses may come, for each response', () => {
    const interim = 'HTTP/1.1 102\r\n\r\n';
    expect(readAnswer(`${interim.repeat(100)}${OK}${EMPTY}`).outcome).toBe('whole');
    expect(readAnswer(interim.repeat(101)).outcome).toBe('refused');
    const parser = new ResponseParser(16_384);
    for (let i = 0; i < 3; i++) {
      parser.expect({ onHead() {}, onContent() {} }, false);
      const bytes = Buffer.from(`${interim.repeat(100)}${OK}${EMPTY}`);
      parser.receive(bytes, bytes.length);
      expect(parser.isReading).toBe(false);
    }
  });

  test('a head longer than what is decoded at a time is read as one', () => {
    const long = `${OK}X-A: ${'a'.repeat(30_000)}\r\nContent-Length: 1\r\n\r\nb`;
    const options = { maxHeaderBytes: 65_536 };
    expect(readAnswer(long, options)).toMatchObject({ outcome: 'whole', content: 'b' });
    for (const at of [4_095, 4_096, 8_191, long.length - 3]) {
      expect(readPieces(cutAt(long, [at]), options)).toMatchObject({ outcome: 'whole', content: 'b' });
    }
    const bareLf = `${OK}X-A: ${'a'.repeat(4_096 - OK.length - 5)}\nX-B: 1\r\n`;
    expect(readAnswer(bareLf, options).outcome).toBe('refused');
  });

  test.each<[number, string]>([
    [4_000, 'whole'],
    [4_200, 'refused'],
  ])('a chunk extension of %d bytes: %s', (length, outcome) => {
    const extension = `;${'a'.repeat(length - 1)}`;
    expect(readAnswer(`${CHUNKED}1${extension}\r\na\r\n${END}`).outcome).toBe(outcome);
    expect(readPieces([...`${CHUNKED}1${extension}\r\na\r\n${END}`]).outcome).toBe(outcome);
  });

  test('the extensions of all chunks may be as long as the content, and one limit longer', () => {
    const chunk = (bytes: number): string => `${bytes.toString(16)};${'a'.repeat(999)}\r\n${'b'.repeat(bytes)}\r\n`;
    expect(readAnswer(`${CHUNKED}${chunk(1).repeat(4)}${END}`)).toMatchObject({ outcome: 'whole', content: 'bbbb' });
    expect(readAnswer(`${CHUNKED}${chunk(1).repeat(5)}${END}`).outcome).toBe('refused');
    expect(readAnswer(`${CHUNKED}${chunk(1_000).repeat(100)}${END}`).outcome).toBe('whole');
    expect(readAnswer(`${CHUNKED}${chunk(60_000).repeat(2)}${chunk(1).repeat(5)}${END}`).outcome).toBe('refused');
  });

  test('a trailer section may be as long as a head, however many lines it has', () => {
    const line = `X-T: ${'a'.repeat(15)}\r\n`;
    expect(readAnswer(`${CHUNKED}0\r\n${line.repeat(8)}\r\n`, LIMITED).outcome).toBe('whole');
    expect(readAnswer(`${CHUNKED}0\r\n${line.repeat(20)}\r\n`, LIMITED).outcome).toBe('refused');
    expect(readAnswer(`${CHUNKED}0\r\nX-T: ${'a'.repeat(LIMIT)}\r\n\r\n`, LIMITED).outcome).toBe('refused');
  });
});

describe('the connection after a response', () => {
  test.each<[string, string, boolean, ReadOptions?]>([
    ['persists', `${OK}${EMPTY}`, true],
    ['persists where it is said', `${OK}Connection: keep-alive\r\n${EMPTY}`, true],
    ['persists after chunks', `${CHUNKED}1\r\na\r\n${END}`, true],
    ['persists after another option', `${OK}Connection: closed\r\n${EMPTY}`, true],
    ['ends where it is said', `${OK}Connection: close\r\n${EMPTY}`, false],
    ['ends where it is said in any case', `${OK}CONNECTION: Close\r\n${EMPTY}`, false],
    ['ends where it is said among others', `${OK}Connection: keep-alive,\tclose , x-a\r\n${EMPTY}`, false],
    ['ends where it is said in one field of two', `${OK}Connection: close\r\nConnection: x-a\r\n${EMPTY}`, false],
    ['ends with HTTP/1.0', `HTTP/1.0 200 OK\r\n${EMPTY}`, false],
    ['ends with HTTP/1.0, whatever it says', `HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n${EMPTY}`, false],
    ['ends with content until the end', `${OK}\r\nabc`, false, CLOSES],
    ['ends with bytes after the content', `${OK}Content-Length: 1\r\n\r\nab`, false],
    ['ends with bytes after the chunks', `${CHUNKED}${END}\r\n`, false],
    ['ends with content to a HEAD', `${OK}Content-Length: 1\r\n\r\na`, false, HEAD],
    ['ends with content of a 304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\n\r\na', false],
  ])('%s', (_, bytes, mayPersist, options) => {
    expect(readAnswer(bytes, options)).toMatchObject({ outcome: 'whole', mayPersist });
    expect(readPieces([...bytes], options)).toMatchObject({ outcome: 'whole', mayPersist });
  });

  test.each<[string, number | undefined]>([
    ['Keep-Alive: timeout=5\r\n', 5],
    ['keep-alive: max=100, Timeout=7\r\n', 7],
    ['Keep-Alive: timeout=7;max=100\r\n', 7],
    ['X-Keep-Alive: timeout=5\r\n', undefined],
    ['', undefined],
  ])('how long it is kept: %j', (line, seconds) => {
    expect(readAnswer(`${OK}${line}${EMPTY}`).keepAliveSeconds).toBe(seconds);
  });

  test('nothing of a response is left for the next', () => {
    const parser = new ResponseParser(16_384);
    const read = (text: string, isHead = false): NotingSink => {
      const sink = new NotingSink();
      const bytes = Buffer.from(text, 'latin1');
      parser.expect(sink, isHead);
      parser.receive(bytes, bytes.length);
      expect(sink.hasEnded).toBe(true);
      return sink;
    };
    read(`${OK}Content-Length: 5\r\nKeep-Alive: timeout=5\r\nConnection: close\r\n\r\n`, true);
    expect(read(`${CHUNKED}3;a\r\nabc\r\n0\r\nX-T: 1\r\n\r\n`).content).toBe('abc');
    expect([parser.mayPersist, parser.keepAliveSeconds]).toEqual([true, undefined]);
    expect(read(`${OK}Content-Length: 5\r\n\r\nabcde`).content).toBe('abcde');
    expect(read(`${CHUNKED}${END}`).content).toBe('');
  });
});

test.each([
  ['000', 'refused'],
  ['099', 'refused'],
  ['100', 'unfinished'],
  ['199', 'unfinished'],
  ['200', 'whole'],
  ['599', 'whole'],
  ['600', 'refused'],
])('a response with status %s is %s', (status, outcome) => {
  const content = status < '200' ? '' : 'Content-Length: 0\r\n';
  expect(readAnswer(`HTTP/1.1 ${status} X\r\n${content}\r\n`).outcome).toBe(outcome);
});

test('what the sink throws reaches the caller', () => {
  const parser = new ResponseParser(16_384);
  const onHead = (): never => {
    throw new InvalidResponseError('not for us');
  };
  parser.expect({ onHead, onContent() {} }, false);
  const bytes = Buffer.from(`${OK}${EMPTY}`);
  expect(() => parser.receive(bytes, bytes.length)).toThrow('not for us');
});

describe('whatever comes', () => {
  const ANSWERS = fc.oneof(GOOD_ANSWERS, DAMAGED_ANSWERS);

  test('what is in good order is read as it was meant', () => {
    fc.assert(
      fc.property(GOOD_ANSWERS, ({ bytes, isHead, status, fields, content }) => {
        expect(readAnswer(bytes, { isHead, closes: true })).toMatchObject({
          outcome: 'whole',
          status,
          fields,
          content,
        });
      }),
      { numRuns: 500 },
    );
  });

  test('however a response is split, it is read the same, and ends once', () => {
    fc.assert(
      fc.property(ANSWERS, fc.array(fc.nat(300)), fc.boolean(), ({ bytes, isHead }, places, closes) => {
        const options = { isHead, closes };
        const whole = readAnswer(bytes, options);
        expect(readPieces(cutAt(bytes, places), options)).toEqual(whole);
        expect(readPieces([...bytes], options)).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });

  test('a response is read the same in any two pieces', () => {
    fc.assert(
      fc.property(ANSWERS, ({ bytes, isHead }) => {
        const whole = readAnswer(bytes, { isHead });
        for (let at = 1; at < bytes.length; at++) expect(readPieces(cutAt(bytes, [at]), { isHead })).toEqual(whole);
      }),
      { numRuns: 50 },
    );
  });

  test('a response with a length has not ended before', () => {
    const framed = GOOD_ANSWERS.filter(({ fields }) =>
      fields.some((name, i) => i % 2 === 0 && (name === 'Content-Length' || name === 'Transfer-Encoding')),
    );
    fc.assert(
      fc.property(framed, ({ bytes, isHead }) => {
        for (let length = 0; length < bytes.length; length++) {
          expect(readAnswer(bytes.slice(0, length), { isHead, closes: true }).outcome).toBe('unfinished');
        }
      }),
      { numRuns: 50 },
    );
  });

  test('nothing fails but by an InvalidResponseError', () => {
    fc.assert(
      fc.property(ANY_BYTES, fc.boolean(), fc.boolean(), (bytes, isHead, closes) => {
        const { outcome } = readAnswer(bytes, { isHead, closes });
        expect(readPieces([...bytes], { isHead, closes }).outcome).toBe(outcome);
      }),
      { numRuns: 2_000 },
    );
  });
});
