/**
 * Parses the upstream's responses: HTTP/1.1 (RFC 9112), read strictly. The upstream is not trusted, so anything
 * ambiguous is rejected, where a browser would guess: bare line feeds, folded headers, a length beside a transfer
 * coding, a second length, any coding but `chunked`.
 */
import { hexValue } from '../../base/hex-digit.ts';

/** The upstream's response is invalid. */
export class InvalidResponseError extends Error {
  override readonly name = 'InvalidResponseError';
}

/** Receives one response in order: its head, then its body until `ended`. Its exceptions reach the parser's caller. */
export interface ResponseSink {
  /**
   * Called with the head of the final response; interim responses are skipped. `lines`: all headers as received, each
   * after the CRLF of the line before it, decoded as Latin-1. `contentLength`: digits, undefined if there is no such
   * header. `ended`: there is no body.
   */
  onHead(status: number, reason: string, lines: string, contentLength: string | undefined, ended: boolean): void;
  /** Called with body bytes, valid only during the call: once for all chunks that arrive in one read. */
  onContent(bytes: Buffer, start: number, end: number, ended: boolean): void;
}

/** Inside a chunked body (RFC 9112 §7.1). */
type ChunkState = 'chunk-size' | 'chunk-extensions' | 'chunk-data' | 'chunk-end' | 'trailer';
/** `length`: body of known length. `close`: body until the connection closes. */
type ParserState = 'idle' | 'head' | 'length' | 'close' | ChunkState;

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const FIELD = `${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*`;
const QUOTED = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"';
/**
 * A head without the empty line that ends it: status line (RFC 9112 §4) and headers (§5). Header names are tokens;
 * values have no control characters but tabs. The reason phrase may be anything, because only a clean one is passed on.
 */
const HEAD = new RegExp(`^HTTP/1\\.[01] [0-9]{3}(?: [^\\r\\n]*)?(?:\\r\\n${FIELD})*$`);
const BARE_LF = /(?<!\r)\n/g;
const FRAMING_FIELD = /^(?:content-length|transfer-encoding):/im;
/** Chunk extensions (RFC 9112 §7.1.1), without the "bad white space" of its grammar. */
const EXTENSIONS = new RegExp(`^(?:;${TOKEN}(?:=(?:${TOKEN}|${QUOTED}))?)*$`);
const TRAILER_FIELD = new RegExp(`^(?!content-length:|transfer-encoding:)${FIELD}$`, 'i');
const STATUS_AT = 'HTTP/1.1 '.length;
const LENGTH = /^[0-9]{1,15}$/;
/** Lengths of Connection and Keep-Alive, Content-Length, Transfer-Encoding. Names of other lengths need no lower-casing. */
const INSPECTED_LENGTHS: ReadonlySet<number> = new Set([10, 14, 17]);
const CLOSE_OPTION = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const KEEP_ALIVE_SECONDS = /(?:^|[,\s])timeout=([0-9]{1,6})(?=$|[,;\s])/i;
/** Up to 256 TiB: far below the largest exact integer, 2^53. */
const MAX_CHUNK_SIZE_DIGITS = 12;
/** For the chunk extensions of a body, which may have one more byte for each byte of content. */
const MAX_EXTENSION_BYTES = 4096;
/** For each response. Servers send a few; each costs as much as a small response, but is not relayed. */
const MAX_INTERIM_RESPONSES = 100;
/** How much of a read is decoded at a time in search of the end of a head, which is usually shorter. */
const HEAD_STEP_BYTES = 4096;

const CR = 0x0d;
const LF = 0x0a;
const TAB = 0x09;
const SEMICOLON = 0x3b;
const SPACE = 0x20;

export class ResponseParser {
  readonly #maxHeaderBytes: number;
  #sink: ResponseSink | undefined;
  #state: ParserState = 'idle';
  #isHead = false;
  /** The received part of an incomplete head. */
  #partialHead = '';
  #interimCount = 0;
  /** Size of the interim responses before the current head. */
  #interimBytes = 0;
  /** Remaining bytes of the body or of the chunk. */
  #remaining = 0;
  /** Range of the buffer in {@link receive} where chunk data is gathered. */
  #gatheredFrom = 0;
  #gatheredTo = 0;
  #digits = 0;
  /** The received part of the chunk's extensions or of a trailer line. */
  #line = '';
  #lineHasCr = false;
  /** Size of the trailer lines before the current one. */
  #trailerBytes = 0;
  /** How many bytes of chunk extensions may arrive before more content. */
  #extensionCredit = 0;
  /** Whether the connection can carry another exchange after the response that has just ended (RFC 9112 §9.3). */
  mayPersist = true;
  /**
   * Whether a HEAD got a response without `Content-Length: 0`, or a 204 or 304 announced a body (RFC 9112 §6.3). The
   * connection may not persist: a body that the upstream sends late would be taken for the next response.
   */
  isContentWithheld = false;
  /** Whether the response is a 204 or 304 whose head announces no body. Some upstreams send one all the same. */
  mayContentFollow = false;
  /** Whether bytes arrived after such a response. */
  hasContentFollowed = false;
  /** Seconds that the upstream keeps the connection open; undefined if it names none. */
  keepAliveSeconds: number | undefined;

  /** `maxHeaderBytes`: limit for a status line with its headers, for the interim responses, and for a trailer section. */
  constructor(maxHeaderBytes: number) {
    this.#maxHeaderBytes = maxHeaderBytes;
  }

  /** Whether the response has not ended yet. */
  get isReading(): boolean {
    return this.#state !== 'idle';
  }

  /** Expects one response. `isHead`: to a HEAD request, so it has no body whatever its headers say. */
  expect(sink: ResponseSink, isHead: boolean): void {
    this.#sink = sink;
    this.#isHead = isHead;
    this.#state = 'head';
    this.#gatheredFrom = 0;
    this.#gatheredTo = 0;
    this.#interimCount = 0;
    this.#interimBytes = 0;
    this.mayPersist = true;
    this.isContentWithheld = false;
    this.mayContentFollow = false;
    this.keepAliveSeconds = undefined;
  }

  /**
   * Parses the first `length` of `bytes`, and may overwrite them. If bytes follow the end of the response, the
   * connection may not persist. Also takes bytes that arrive while no response is expected.
   * @throws InvalidResponseError
   */
  receive(bytes: Buffer, length: number): void {
    try {
      for (let at = 0; at < length; ) {
        if (this.#state === 'idle') {
          this.mayPersist = false;
          this.hasContentFollowed = this.mayContentFollow;
          return;
        }
        at = this.#step(bytes, at, length);
      }
    } finally {
      if (this.#gatheredTo > this.#gatheredFrom) this.#passGathered(bytes, false);
    }
  }

  /** Handles the end of the connection. Returns true if that completes the response. */
  finish(): boolean {
    if (this.#state !== 'close') return false;
    this.mayPersist = false;
    this.#content(EMPTY, 0, 0, true);
    return true;
  }

  /** Parses on from `at`; returns where to continue. */
  #step(bytes: Buffer, at: number, length: number): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes, at, length);
      case 'length': {
        const end = Math.min(length, at + this.#remaining);
        this.#remaining -= end - at;
        this.#content(bytes, at, end, this.#remaining === 0);
        return end;
      }
      case 'close':
        this.#content(bytes, at, length, false);
        return length;
      case 'chunk-data': {
        const end = Math.min(length, at + this.#remaining);
        this.#remaining -= end - at;
        if (this.#remaining === 0) this.#state = 'chunk-end';
        this.#gather(bytes, at, end);
        return end;
      }
      default:
        this.#readFraming(bytes, at);
        return at + 1;
    }
  }

  #content(bytes: Buffer, start: number, end: number, ended: boolean): void {
    const sink = this.#sink;
    if (ended) this.#end();
    sink?.onContent(bytes, start, end, ended);
  }

  /**
   * Moves the data of a chunk next to that of the chunks before it. Thousands of one-byte chunks would otherwise be as many
   * writes, each of which costs a hundred times its length if the client does not read.
   */
  #gather(bytes: Buffer, start: number, end: number): void {
    if (this.#gatheredTo === this.#gatheredFrom) {
      this.#gatheredFrom = start;
      this.#gatheredTo = end;
    } else {
      bytes.copyWithin(this.#gatheredTo, start, end);
      this.#gatheredTo += end - start;
    }
  }

  #passGathered(bytes: Buffer, ended: boolean): void {
    const start = this.#gatheredFrom;
    const end = this.#gatheredTo;
    this.#gatheredFrom = 0;
    this.#gatheredTo = 0;
    this.#content(bytes, start, end, ended);
  }

  #end(): void {
    this.#state = 'idle';
    this.#sink = undefined;
  }

  #readHead(bytes: Buffer, at: number, length: number): number {
    const before = this.#partialHead.length;
    const max = this.#maxHeaderBytes;
    const readTo = headEnd(bytes, at, Math.min(length, at + HEAD_STEP_BYTES));
    const text = this.#partialHead + bytes.toString('latin1', at, readTo);
    const end = text.indexOf('\r\n\r\n', Math.max(0, before - 3));
    if (end > max || (end < 0 && text.length > max + 3)) {
      throw new InvalidResponseError(`a head of more than ${max} bytes`);
    }
    if (end < 0) {
      // Such a head never becomes valid, so the exchange fails now instead of at its deadline.
      BARE_LF.lastIndex = before;
      if (BARE_LF.test(text)) throw new InvalidResponseError('a bare line feed in a head');
      this.#partialHead = text;
      return readTo;
    }
    this.#partialHead = '';
    this.#takeHead(text.slice(0, end));
    return at + end + 4 - before;
  }

  #takeHead(text: string): void {
    if (!HEAD.test(text)) throw new InvalidResponseError('not the head of an HTTP/1.1 response');
    const status = Number(text.slice(STATUS_AT, STATUS_AT + 3));
    if (status < 100 || status > 599) throw new InvalidResponseError(`status ${status}`);
    if (status < 200) {
      if (status === 101) throw new InvalidResponseError('an upgrade without a request for it');
      // Forbidden by RFC 9110 §8.6, §15.2 and RFC 9112 §6.1: the start of the next response would be ambiguous.
      if (text[7] === '0' || FRAMING_FIELD.test(text))
        throw new InvalidResponseError('an interim response with a body');
      this.#interimCount++;
      this.#interimBytes += text.length + 4;
      if (this.#interimCount > MAX_INTERIM_RESPONSES || this.#interimBytes > this.#maxHeaderBytes) {
        throw new InvalidResponseError('too many interim responses');
      }
      return;
    }
    let lineEnd = text.indexOf('\r\n');
    if (lineEnd < 0) lineEnd = text.length;
    const reason = text.slice(STATUS_AT + 4, lineEnd);
    const lines = text.slice(lineEnd);
    let contentLength: string | undefined;
    let coding: string | undefined;
    this.mayPersist = text[7] === '1'; // HTTP/1.0 announces persistence in several ways, which are not supported
    while (lineEnd < text.length) {
      const start = lineEnd + 2;
      lineEnd = text.indexOf('\r\n', start);
      if (lineEnd < 0) lineEnd = text.length;
      const colon = text.indexOf(':', start);
      if (!INSPECTED_LENGTHS.has(colon - start)) continue;
      const value = trimmed(text, colon + 1, lineEnd);
      switch (text.slice(start, colon).toLowerCase()) {
        case 'content-length':
          if (contentLength !== undefined || !LENGTH.test(value)) {
            throw new InvalidResponseError('an invalid or repeated Content-Length');
          }
          contentLength = value;
          break;
        case 'transfer-encoding':
          if (coding !== undefined || value.toLowerCase() !== 'chunked') {
            throw new InvalidResponseError('a transfer coding other than chunked');
          }
          coding = value;
          break;
        case 'connection':
          if (CLOSE_OPTION.test(value)) this.mayPersist = false;
          break;
        case 'keep-alive': {
          const [, seconds] = KEEP_ALIVE_SECONDS.exec(value) ?? [];
          if (seconds !== undefined) this.keepAliveSeconds = Number(seconds);
          break;
        }
      }
    }
    if (coding !== undefined && (contentLength !== undefined || text[7] === '0')) {
      throw new InvalidResponseError('a transfer coding beside a length, or in HTTP/1.0'); // RFC 9112 §6.1, §6.3
    }
    this.#beginContent(status, reason, lines, contentLength, coding !== undefined);
  }

  /** Determines what follows the head (RFC 9112 §6.3). */
  #beginContent(
    status: number,
    reason: string,
    lines: string,
    contentLength: string | undefined,
    isChunked: boolean,
  ): void {
    const sink = this.#sink;
    const announcesNone = !isChunked && contentLength !== undefined && Number(contentLength) === 0;
    const hasNone = this.#isHead || status === 204 || status === 304;
    const ended = hasNone || announcesNone;
    if (ended) {
      if (!announcesNone) {
        this.isContentWithheld = this.#isHead || isChunked || contentLength !== undefined;
        this.mayContentFollow = !this.isContentWithheld;
        if (this.isContentWithheld) this.mayPersist = false;
      }
      this.#end();
    } else if (isChunked) {
      this.#extensionCredit = MAX_EXTENSION_BYTES;
      this.#beginChunk();
    } else if (contentLength !== undefined) {
      this.#remaining = Number(contentLength);
      this.#state = 'length';
    } else {
      this.#state = 'close';
    }
    sink?.onHead(status, reason, lines, contentLength, ended);
  }

  #beginChunk(): void {
    this.#state = 'chunk-size';
    this.#remaining = 0;
    this.#digits = 0;
  }

  /** Parses the byte at `at`, which is not chunk data (RFC 9112 §7.1). */
  #readFraming(bytes: Buffer, at: number): void {
    const byte = bytes[at] ?? 0;
    switch (this.#state) {
      case 'chunk-size': {
        const digit = hexValue(byte);
        if (digit >= 0 && this.#digits < MAX_CHUNK_SIZE_DIGITS) {
          this.#digits++;
          this.#remaining = this.#remaining * 16 + digit;
          return;
        }
        if (this.#digits === 0 || (byte !== CR && byte !== SEMICOLON)) break;
        this.#state = 'chunk-extensions';
        this.#readLine(byte, this.#extensionCredit);
        return;
      }
      case 'chunk-extensions': {
        const extensions = this.#readLine(byte, this.#extensionCredit);
        if (extensions === undefined) return;
        if (!EXTENSIONS.test(extensions)) break;
        this.#extensionCredit = Math.min(
          MAX_EXTENSION_BYTES,
          this.#extensionCredit + this.#remaining - extensions.length,
        );
        this.#trailerBytes = 0;
        this.#state = this.#remaining > 0 ? 'chunk-data' : 'trailer';
        return;
      }
      case 'chunk-end':
        if (this.#readLine(byte, 0) !== undefined) this.#beginChunk();
        return;
      case 'trailer': {
        const line = this.#readLine(byte, this.#maxHeaderBytes - this.#trailerBytes);
        if (line === undefined) return;
        if (line === '') {
          this.#passGathered(bytes, true);
          return;
        }
        if (!TRAILER_FIELD.test(line)) break;
        this.#trailerBytes += line.length + 2;
        return;
      }
    }
    throw new InvalidResponseError('invalid chunks');
  }

  /** Parses a byte of a line of at most `maxBytes`. Returns the line, without its CRLF, once it is complete. */
  #readLine(byte: number, maxBytes: number): string | undefined {
    if (this.#lineHasCr) {
      if (byte !== LF) throw new InvalidResponseError('a bare carriage return between chunks');
      const line = this.#line;
      this.#line = '';
      this.#lineHasCr = false;
      return line;
    }
    if (byte === CR) this.#lineHasCr = true;
    else if (byte < SPACE && byte !== TAB) throw new InvalidResponseError('a control character between chunks');
    else if (this.#line.length >= maxBytes) throw new InvalidResponseError('too many bytes between chunks');
    else this.#line += String.fromCharCode(byte);
    return undefined;
  }
}

const EMPTY = Buffer.alloc(0);

/** Returns the index after the empty line that ends a head; `to` if there is none. The body is not decoded with the head. */
function headEnd(bytes: Buffer, from: number, to: number): number {
  for (let i = from + 3; i < to; i++) {
    if (bytes[i] === LF && bytes[i - 2] === LF && bytes[i - 1] === CR && bytes[i - 3] === CR) return i + 1;
  }
  return to;
}

/** Returns the text from `start` to `end` without the white space around it (RFC 9112 §5.1). */
function trimmed(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
