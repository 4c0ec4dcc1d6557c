import {
  InvalidResponseError,
  ResponseParser,
  type ResponseSink,
} from '../../../src/upstream/http1/response-parser.ts';

/** What a parser told of one answer, all bytes as Latin-1. */
export interface Reading {
  /** `refused`: for good reason, which is an InvalidResponseError; `unfinished`: more would have to come. */
  readonly outcome: 'whole' | 'unfinished' | 'refused';
  /** 0 when there was no head. */
  readonly status: number;
  readonly reason: string;
  /** Flat, as received but for white space around values. */
  readonly fields: readonly string[];
  readonly content: string;
}

/** Notes what it is told, and throws when it is told out of order: one head, then content, one end, nothing after it. */
export class NotingSink implements ResponseSink {
  status = 0;
  reason = '';
  fields: readonly string[] = [];
  content = '';
  hasEnded = false;
  #hasHead = false;

  onHead(status: number, reason: string, lines: string, _contentLength: string | undefined, ended: boolean): void {
    if (this.#hasHead) throw new Error('told of two heads');
    this.#hasHead = true;
    this.status = status;
    this.reason = reason;
    this.fields = lines
      .split('\r\n')
      .slice(1)
      .flatMap((line) => [line.slice(0, line.indexOf(':')), /:[\t ]*(.*?)[\t ]*$/s.exec(line)?.[1] ?? '']);
    this.hasEnded = ended;
  }

  onContent(bytes: Buffer, start: number, end: number, ended: boolean): void {
    if (!this.#hasHead) throw new Error('told of content before the head');
    if (this.hasEnded) throw new Error('told of content after the end');
    if (start > end || end > bytes.length) throw new Error('told of content outside of the bytes');
    this.content += bytes.toString('latin1', start, end);
    this.hasEnded = ended;
  }

  reading(outcome: Reading['outcome']): Reading {
    return { outcome, status: this.status, reason: this.reason, fields: this.fields, content: this.content };
  }
}

export interface ReadOptions {
  /** The answer is to a HEAD. */
  readonly isHead?: boolean;
  /** The connection ends after the last piece. */
  readonly closes?: boolean;
  readonly maxHeaderBytes?: number;
}

/**
 * Reads an answer that comes in `pieces` (Latin-1), each in the same memory as the one before, as a connection does.
 * Throws what is not an InvalidResponseError.
 */
export function readPieces(
  pieces: readonly string[],
  { isHead = false, closes = false, maxHeaderBytes = 16_384 }: ReadOptions = {},
): Reading & { readonly mayPersist: boolean; readonly keepAliveSeconds: number | undefined } {
  const parser = new ResponseParser(maxHeaderBytes);
  const sink = new NotingSink();
  const memory = Buffer.alloc(Math.max(1, ...pieces.map((piece) => piece.length)));
  let outcome: Reading['outcome'] = 'unfinished';
  parser.expect(sink, isHead);
  try {
    for (const piece of pieces) {
      memory.fill('!').write(piece, 'latin1');
      parser.receive(memory, piece.length);
    }
    if (closes && parser.isReading) parser.finish();
    if (!parser.isReading) outcome = 'whole';
  } catch (error) {
    if (!(error instanceof InvalidResponseError)) throw error;
    outcome = 'refused';
  }
  if (sink.hasEnded !== (outcome === 'whole')) throw new Error(`the sink was not told the end of what is ${outcome}`);
  return { ...sink.reading(outcome), mayPersist: parser.mayPersist, keepAliveSeconds: parser.keepAliveSeconds };
}

export function readAnswer(bytes: string, options?: ReadOptions): ReturnType<typeof readPieces> {
  return readPieces([bytes], options);
}

/** `bytes` cut at the given places; those beyond its end cut nothing off. */
export function cutAt(bytes: string, places: readonly number[]): string[] {
  const sorted = [...places].sort((a, b) => a - b);
  return [...sorted, bytes.length]
    .map((place, i) => bytes.slice(sorted[i - 1] ?? 0, place))
    .filter((piece) => piece !== '');
}
