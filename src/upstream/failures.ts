import type { ProblemCode } from '../problems/table.ts';

/** Why a request got no complete answer from the upstream. */
export type UpstreamFailure =
  /** No connection could be made: refused, unreachable, unknown host, TLS. */
  | 'refused'
  | 'connect_timeout'
  /** The time to begin passed while the request waited for a connection; nothing was sent. */
  | 'dispatch_timeout'
  /** Begun, but no head of an answer in time. */
  | 'response_timeout'
  | 'total_timeout'
  /** The connection ended before the answer did. */
  | 'reset'
  /** What came is not an HTTP/1.1 answer. */
  | 'invalid_answer';

/** The upstream sent something that undici lets pass and a caller must not get. */
export class InvalidAnswerError extends Error {
  override readonly name = 'InvalidAnswerError';
}

const PROBLEMS_OF_FAILURES = {
  refused: 'upstream_unavailable',
  connect_timeout: 'upstream_unavailable',
  dispatch_timeout: 'upstream_unavailable',
  response_timeout: 'gateway_timeout',
  total_timeout: 'gateway_timeout',
  reset: 'bad_gateway',
  invalid_answer: 'bad_gateway',
} as const satisfies Record<UpstreamFailure, ProblemCode>;

/** What the caller is told of a failure. */
export function failureProblem(failure: UpstreamFailure): (typeof PROBLEMS_OF_FAILURES)[UpstreamFailure] {
  return PROBLEMS_OF_FAILURES[failure];
}

/** Raised for our own mistakes: arguments that undici refuses, its broken assertions. */
const BUG_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_INVALID_RETURN_VALUE',
  'UND_ERR_NOT_SUPPORTED',
  'ERR_ASSERTION',
]);
const INVALID_ANSWER_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]);
const INVALID_ANSWER_NAMES: ReadonlySet<string> = new Set(['HTTPParserError', 'InvalidAnswerError']);
/** undici uses one code for a closed connection and for these; only the message tells them apart. */
const INVALID_ANSWER_MESSAGES: ReadonlySet<string> = new Set(['bad response', 'bad upgrade']);

/**
 * The failure behind an error of undici or of the system; undefined when the error is a bug of the gateway.
 * `begun`: the request had been given to a connection.
 */
export function classifyError(error: unknown, begun: boolean): UpstreamFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code !== undefined && BUG_CODES.has(code)) return undefined;
  const invalidAnswer =
    INVALID_ANSWER_NAMES.has(error.name) ||
    (code !== undefined && INVALID_ANSWER_CODES.has(code)) ||
    (code === 'UND_ERR_SOCKET' && INVALID_ANSWER_MESSAGES.has(error.message));
  if (code === undefined && !invalidAnswer) return undefined;
  if (begun) return invalidAnswer ? 'invalid_answer' : 'reset';
  return code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT' ? 'connect_timeout' : 'refused';
}
