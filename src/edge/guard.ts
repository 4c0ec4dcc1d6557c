/**
 * The first check of a request, before routing and authentication: refuses everything but a well-formed request, and a
 * body of GET and HEAD. Node.js's strict parser has already checked the framing; the guard adds what Node.js leaves out.
 */
import { isIPv6 } from 'node:net';
import type { Problem } from '../http/problems/document.ts';
import { findPathFault } from './path.ts';

export interface GuardLimits {
  /** All header names and values, plus four bytes per header for `: ` and CRLF. */
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly targetBytes: number;
}

/** The parts of an `IncomingMessage` that the guard reads. */
interface RawRequest {
  /** The request target as received. Set by {@link hideTarget}; Express leaves it as it is. */
  readonly originalUrl?: string | undefined;
  readonly method?: string | undefined;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
}

interface GuardRefusal {
  readonly passed: false;
  readonly problem: Problem;
}

export interface PassedRequest {
  readonly passed: true;
  readonly path: string;
  /** As received, including the question mark; empty if there is none. */
  readonly query: string;
  /** The requested authority, from the target or else from Host. Empty for HTTP/1.0 without either. */
  readonly host: string;
  readonly body: BodyHeaders;
}

/** What the headers say about the body (RFC 9112 §6). */
interface BodyHeaders {
  readonly isChunked: boolean;
  /** Content-Length; undefined if it was not sent, and for GET and HEAD, which have no body. */
  readonly length: number | undefined;
}

const NO_BODY: BodyHeaders = { isChunked: false, length: undefined };

/** Absolute form of the target, which clients send to proxies (RFC 9112 §3.2.2). Groups: authority, path, query. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#@]+)(\/[^?]*)?(\?.*)?$/i;
/** Allowed in a query: every visible ASCII character except `#`, which ends it for some parsers. */
const QUERY = /^[\x21\x22\x24-\x7e]*$/;
/**
 * A host name or IP address with an optional port (RFC 9110 §7.2). RFC 3986 also allows percent-encoding and commas,
 * which real names do not use. They are refused, so that the backend finds no list and no escape in X-Forwarded-Host.
 */
const HOST =
  /^(?:[A-Za-z0-9._~-]+|\[([0-9A-Fa-f:.]+)\])(?::(?:\d{0,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?$/;
/** A list of protocols, each with an optional version (RFC 9110 §7.8). */
const WEBSOCKET = /(?:^|,)[ \t]*websocket[ \t]*(?:[/,]|$)/i;
const EXPECTATION = /^(?:100-continue)?$/i;

/** Lengths of Host, Expect, Upgrade, Content-Length and Transfer-Encoding. Names of other lengths need no lower-casing. */
const INSPECTED_LENGTHS: ReadonlySet<number> = new Set([4, 6, 7, 14, 17]);

function refusal(code: Problem['code'], detail: string): GuardRefusal {
  return { passed: false, problem: { code, detail, headers: ['Connection', 'close'] } };
}

const BODY_REFUSED = refusal('body_not_allowed', 'Send GET and HEAD requests without a body.');
const WEBSOCKET_REFUSED = refusal(
  'not_implemented',
  'This gateway forwards no WebSockets. A load balancer in front of it can send them to the backend.',
);
/** Node.js's parser refuses most of these, too. */
const AMBIGUOUS_LENGTH = refusal(
  'bad_request',
  'The length of the body is ambiguous: send either Content-Length or, with HTTP/1.1, Transfer-Encoding: chunked.',
);
const CHUNKED_BODY: BodyHeaders = { isChunked: true, length: undefined };
const LENGTH = /^[0-9]{1,20}$/;

/** Returns whether a text is a host name or an address, with or without a port. */
export function isHost(value: string): boolean {
  if (!value.startsWith('[')) return HOST.test(value);
  const [, address] = HOST.exec(value) ?? [];
  return address !== undefined && isIPv6(address);
}

function splitTarget(target: string): { path: string; query: string; authority?: string } | undefined {
  if (target.startsWith('/')) {
    const mark = target.indexOf('?');
    return mark < 0 ? { path: target, query: '' } : { path: target.slice(0, mark), query: target.slice(mark) };
  }
  const [absolute, authority, path = '/', query = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  return absolute === undefined || authority === undefined ? undefined : { path, query, authority };
}

/**
 * Checks size, framing, Expect and Host in one pass over the raw headers: `req.headers` joins or drops duplicates.
 * `isForwarded`: whether the request itself is to be forwarded. Otherwise Expect, Upgrade and a body do not matter.
 */
export function guardHeaders(
  { rawHeaders, httpVersion, method }: RawRequest,
  limits: GuardLimits,
  isForwarded: boolean,
): GuardRefusal | Pick<PassedRequest, 'passed' | 'host' | 'body'> {
  if (rawHeaders.length > 2 * limits.headerCount) {
    return refusal('headers_too_large', `A request may have at most ${limits.headerCount} headers.`);
  }
  const mayHaveBody = !isForwarded || (method !== 'GET' && method !== 'HEAD');
  let host: string | undefined;
  let body = NO_BODY;
  let bytes = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    bytes += name.length + value.length + 4;
    if (!INSPECTED_LENGTHS.has(name.length)) continue;
    switch (name.toLowerCase()) {
      case 'host':
        if (host !== undefined) return refusal('bad_request', 'Send exactly one Host header.');
        if (!isHost(value)) return refusal('bad_request', 'The Host header is not a host name.');
        host = value;
        break;
      case 'expect':
        // RFC 9110 §10.1.1 defines no other expectation. Refuse what cannot be met instead of ignoring it.
        if (isForwarded && !EXPECTATION.test(value)) {
          return refusal('expectation_failed', 'The only supported expectation is 100-continue.');
        }
        break;
      case 'upgrade':
        // Without the upgrade, the response would be useless to the client, and would be counted.
        if (isForwarded && WEBSOCKET.test(value)) return WEBSOCKET_REFUSED;
        break;
      case 'transfer-encoding':
        if (value === '') return refusal('bad_request', 'The Transfer-Encoding header is empty.');
        if (value.toLowerCase() !== 'chunked') {
          return refusal('not_implemented', 'The only supported transfer coding is chunked.');
        }
        if (!mayHaveBody) return BODY_REFUSED;
        if (body !== NO_BODY || httpVersion === '1.0') return AMBIGUOUS_LENGTH;
        body = CHUNKED_BODY;
        break;
      case 'content-length':
        if (!mayHaveBody && value !== '0') return BODY_REFUSED;
        if (body !== NO_BODY || !LENGTH.test(value)) return AMBIGUOUS_LENGTH;
        if (mayHaveBody) body = { isChunked: false, length: Number(value) };
        break;
    }
  }
  if (bytes > limits.headerBytes) {
    return refusal('headers_too_large', `The headers may have at most ${limits.headerBytes} bytes in total.`);
  }
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return refusal('bad_request', 'This gateway supports only HTTP/1.1 and HTTP/1.0.');
  }
  if (host === undefined && httpVersion === '1.1') {
    return refusal('bad_request', 'An HTTP/1.1 request needs a Host header (RFC 9112, section 3.2).');
  }
  return { passed: true, host: host ?? '', body };
}

/** Checks a request target, in origin form or absolute form. */
export function guardTarget(target: string, limits: Pick<GuardLimits, 'targetBytes'>) {
  if (target.length > limits.targetBytes) {
    return refusal('target_too_long', `Path and query may have at most ${limits.targetBytes} bytes in total.`);
  }
  const parts = splitTarget(target);
  if (parts === undefined) {
    return refusal('bad_request', 'The request target must be a path that begins with a slash.');
  }
  if (parts.authority !== undefined && !isHost(parts.authority)) {
    return refusal('bad_request', 'The host in the request target is not a host name.');
  }
  const fault = findPathFault(parts.path);
  if (fault) return refusal('bad_request', `The path ${fault}.`);
  if (!QUERY.test(parts.query)) {
    return refusal('bad_request', 'The query has a character that must be percent-encoded.');
  }
  return { passed: true as const, ...parts };
}

/**
 * Moves the target from `url` to `originalUrl`. Call it before Express, whose router parses `url`: for a target that it
 * cannot parse, it calls no handler, and with `optimizeEmptyRequests` sends no response.
 */
export function hideTarget(request: { url?: string | undefined; originalUrl?: string | undefined }): void {
  request.originalUrl = request.url;
  request.url = '/';
}

export function guard(request: RawRequest, limits: GuardLimits): GuardRefusal | PassedRequest {
  const target = guardTarget(request.originalUrl ?? '', limits);
  if (!target.passed && target.problem.code === 'target_too_long') return target;
  const headers = guardHeaders(request, limits, true);
  if (!headers.passed) return headers;
  if (!target.passed) return target;
  const { path, query, authority } = target;
  return { passed: true, path, query, host: authority ?? headers.host, body: headers.body };
}
