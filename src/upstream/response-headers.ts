import { type ServerResponse, STATUS_CODES } from 'node:http';
import { HOP_BY_HOP } from '../formats/header-names.ts';
import { connectionNamed } from './hop-by-hop.ts';

/** A reason phrase (RFC 9112 §4) without obs-text. Any other is replaced by Node.js's default. */
export const CLEAN_REASON = /^[\t\x20-\x7e]+$/;
/** A Connection header with an option other than `close` and `keep-alive`, which is rare. */
const NAMING_CONNECTION = /\r\nconnection:[\t ]*(?=[^\t \r])(?!(?:close|keep-alive)[\t ]*(?:\r|$))/i;
const CONTENT_LENGTH = /\r\ncontent-length:[^\r]*/i;
const DATE = /\r\ndate:[^\r]*/gi;
/** Groups: name, value. */
const LINE = /\r\n([^:]*):([^\r]*)/g;

/**
 * Returns a function that removes from response headers what is not passed on to the client: hop-by-hop headers, headers
 * that only the gateway sets, and repeated Dates. All others stay as received (names, order, repeats). Its parameters:
 * - `lines`: the upstream's headers, each after the CRLF of the line before it
 * - `status`: the final status; RFC 9110 §8.6 forbids Content-Length in a 204
 * - `replaced`: finds further lines to remove
 * @param ownNames - lower-case names of headers that only the gateway sets
 */
export function createResponseFilter(ownNames: ReadonlySet<string>) {
  const names = [...HOP_BY_HOP, ...ownNames, 'x[^a-z0-9:]tollgate[^a-z0-9:][^:]*'].join('|');
  const dropped = new RegExp(`\\r\\n(?:${names}):[^\\r]*`, 'gi');
  return (lines: string, status: number, replaced?: RegExp): string => {
    let kept = lines.replace(dropped, '');
    if (replaced !== undefined) kept = kept.replace(replaced, '');
    if (NAMING_CONNECTION.test(lines)) {
      const named = connectionNamed([...lines.matchAll(LINE)].flatMap(([, ...nameAndValue]) => nameAndValue));
      kept = kept.replace(LINE, (line, name: string) => (named?.has(name.toLowerCase()) ? '' : line));
    }
    if (status === 204) kept = kept.replace(CONTENT_LENGTH, '');
    DATE.lastIndex = 0;
    if (!DATE.test(kept)) return kept;
    const end = DATE.lastIndex;
    return DATE.test(kept) ? kept.slice(0, end) + kept.slice(end).replace(DATE, '') : kept;
  };
}

/** A private field of Node.js: the head as it is sent, in Latin-1. */
type WithHead = ServerResponse & { _header: string };

/**
 * Writes the head of a response without headers so far. `lines` are added as they are: see
 * docs/dev/decisions/0020-response-heads-stay-text.md. Node.js adds the rest: framing, Date and Connection. Returns whether
 * the body is to be written in chunks: by the caller, because Node.js makes four writes of each.
 * @param contentLength - the value of Content-Length in `lines`; undefined if there is none
 */
export function writeResponseHead(
  res: ServerResponse,
  status: number,
  reason: string,
  lines: string,
  contentLength: string | undefined,
): boolean {
  const framing = contentLength === undefined ? [] : ['Content-Length', contentLength];
  DATE.lastIndex = 0;
  res.sendDate = !DATE.test(lines);
  if (reason === STATUS_CODES[status] || !CLEAN_REASON.test(reason)) res.writeHead(status, framing);
  else res.writeHead(status, reason, framing);
  const { _header: head } = res as WithHead;
  const statusEnd = head.indexOf('\r\n');
  const framingEnd = contentLength === undefined ? statusEnd : head.indexOf('\r\n', statusEnd + 2);
  (res as WithHead)._header = head.slice(0, statusEnd) + lines + head.slice(framingEnd);
  const isChunked = res.chunkedEncoding;
  res.chunkedEncoding = false;
  return isChunked;
}
