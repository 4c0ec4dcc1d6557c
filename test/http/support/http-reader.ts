/**
 * A small reader of HTTP/1.1 messages, strict and written apart from the gateway's own: what it does not take is no
 * message. It works on whole buffers, for simplicity: a test has no more than it can hold.
 */

export interface Message {
  /** `[name, value]`, as received but for the white space around the value. */
  readonly fields: readonly (readonly [string, string])[];
}

export interface ReadRequest extends Message {
  readonly method: string;
  readonly target: string;
  /** As Latin-1, without the framing of chunks. */
  readonly content: string;
}

export interface ReadAnswer extends Message {
  readonly status: number;
  readonly reason: string;
  /** As Latin-1, without the framing of chunks. */
  readonly content: string;
  /** What says where the content ends; `close`: the end of the connection. */
  readonly framing: 'none' | 'length' | 'chunked' | 'close';
}

class NotAMessageError extends Error {
  override readonly name = 'NotAMessageError';
}

const REQUEST_LINE = /^([A-Z]+) ([\x21-\x7e]+) HTTP\/1\.1$/;
const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) ([\t\x20-\x7e\x80-\xff]*)$/;
const FIELD =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[ \t]*$/;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,8})$/;

/** All values of a field, in order; `name` in lower case. */
export function fieldValues(message: Message, name: string): string[] {
  return message.fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}

export function fieldValue(message: Message, name: string): string | undefined {
  return fieldValues(message, name)[0];
}

/** The start line and the fields before the first empty line, and where that ends; undefined while it is not there. */
function readHead(
  text: string,
  at: number,
): { startLine: string; fields: [string, string][]; end: number } | undefined {
  const end = text.indexOf('\r\n\r\n', at);
  if (end < 0) return undefined;
  const [startLine = '', ...lines] = text.slice(at, end).split('\r\n');
  const fields = lines.map((line): [string, string] => {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new NotAMessageError(`no field: ${JSON.stringify(line)}`);
    return [name, value];
  });
  return { startLine, fields, end: end + 4 };
}

/**
 * Reads the requests in what a backend received over one connection, and how many bytes are left of an unfinished one.
 * @throws NotAMessageError
 */
export function readRequests(text: string): { requests: ReadRequest[]; rest: number } {
  const requests: ReadRequest[] = [];
  let at = 0;
  for (;;) {
    const head = readHead(text, at);
    if (head === undefined) return { requests, rest: text.length - at };
    const [, method, target] = REQUEST_LINE.exec(head.startLine) ?? [];
    if (method === undefined || target === undefined) {
      throw new NotAMessageError(`no request line: ${JSON.stringify(head.startLine)}`);
    }
    const { length, isChunked } = readFraming(head);
    const read = isChunked ? readChunks(text, head.end) : readLength(text, head.end, length ?? 0);
    if (read === undefined) return { requests, rest: text.length - at };
    requests.push({ method, target, fields: head.fields, content: read.content });
    at = read.end;
  }
}

interface Content {
  readonly content: string;
  readonly framing: ReadAnswer['framing'];
  readonly end: number;
}

function readChunks(text: string, start: number): Content | undefined {
  let content = '';
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const [, digits] = CHUNK_SIZE.exec(text.slice(at, lineEnd)) ?? [];
    if (digits === undefined) throw new NotAMessageError(`no chunk size: ${JSON.stringify(text.slice(at, lineEnd))}`);
    const size = Number.parseInt(digits, 16);
    const dataEnd = lineEnd + 2 + size;
    if (text.length < dataEnd + 2) return undefined;
    if (text.slice(dataEnd, dataEnd + 2) !== '\r\n') throw new NotAMessageError('a chunk does not end where it should');
    content += text.slice(lineEnd + 2, dataEnd);
    at = dataEnd + 2;
    if (size === 0) return { content, framing: 'chunked', end: at };
  }
}

/** Returns what the fields say about the end of the content. @throws NotAMessageError if that is not clear */
function readFraming(message: Message): { length: number | undefined; isChunked: boolean } {
  const lengths = fieldValues(message, 'content-length');
  const codings = fieldValues(message, 'transfer-encoding');
  if (lengths.length > 1 || codings.length > 1 || (lengths.length === 1 && codings.length === 1)) {
    throw new NotAMessageError(`unclear framing: ${JSON.stringify(message.fields)}`);
  }
  const [length] = lengths;
  if (length !== undefined && !/^[0-9]+$/.test(length)) throw new NotAMessageError(`no length: ${length}`);
  if (codings.length === 1 && codings[0] !== 'chunked') throw new NotAMessageError(`coding ${codings[0]}`);
  return { length: length === undefined ? undefined : Number(length), isChunked: codings.length === 1 };
}

function readLength(text: string, at: number, length: number): Content | undefined {
  const end = at + length;
  return text.length < end ? undefined : { content: text.slice(at, end), framing: 'length', end };
}

function readContent(text: string, at: number, status: number, message: Message, isHead: boolean, hasEnded: boolean) {
  const { length, isChunked } = readFraming(message);
  if (isHead || status === 204 || status === 304 || status < 200) {
    if ((status === 204 || status < 200) && (length !== undefined || isChunked)) {
      throw new NotAMessageError(`framing in a ${status}`);
    }
    return { content: '', framing: 'none', end: at } satisfies Content;
  }
  if (isChunked) return readChunks(text, at);
  if (length !== undefined) return readLength(text, at, length);
  if (!hasEnded) return undefined;
  return { content: text.slice(at), framing: 'close', end: text.length } satisfies Content;
}

/**
 * The answers in what a caller received over one connection, and what is left after them.
 * @param isHead - whether the request with this number was a HEAD; told what follows the answer's head, for who does not know
 * @param hasEnded - whether nothing more will come
 * @throws NotAMessageError
 */
export function readAnswers(
  text: string,
  isHead: (index: number, following: string) => boolean,
  hasEnded: boolean,
): { answers: ReadAnswer[]; rest: string } {
  const answers: ReadAnswer[] = [];
  let at = 0;
  for (;;) {
    const head = readHead(text, at);
    if (head === undefined) return { answers, rest: text.slice(at) };
    const [, digits, reason] = STATUS_LINE.exec(head.startLine) ?? [];
    if (digits === undefined || reason === undefined) {
      throw new NotAMessageError(`no status line: ${JSON.stringify(head.startLine)}`);
    }
    const status = Number(digits);
    const read = readContent(
      text,
      head.end,
      status,
      head,
      isHead(answers.length, text.slice(head.end, head.end + 8)),
      hasEnded,
    );
    if (read === undefined) return { answers, rest: text.slice(at) };
    answers.push({ status, reason, fields: head.fields, content: read.content, framing: read.framing });
    at = read.end;
  }
}
