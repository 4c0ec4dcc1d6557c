import type { ProblemCode } from '../problems/table.ts';

/** Why a request got no complete answer from the upstream. */
export type UpstreamFailure =
  /** None of the upstreams is in service; nothing was tried. */
  | 'none_available'
  /** No connection could be made: refused, unreachable, unknown host, TLS. */
  | 'refused'
  | 'connect_timeout'
  /** The customer uses its share of the connections up; nothing was sent. */
  | 'share_exceeded'
  /** The time to begin passed while the request waited for a connection; nothing was sent. */
  | 'dispatch_timeout'
  /** Begun, but no head of an answer in time. */
  | 'response_timeout'
  | 'total_timeout'
  /** The connection ended before the answer did. */
  | 'reset'
  /** What came is not an HTTP/1.1 answer. */
  | 'invalid_answer';

/** The upstream sent what is not an answer, or one that a caller must not get. */
export class InvalidAnswerError extends Error {
  override readonly name = 'InvalidAnswerError';
}

/** The upstream closed the connection before the answer was complete. */
export class ConnectionEndedError extends Error {
  override readonly name = 'ConnectionEndedError';
  readonly code = 'ECONNRESET';

  constructor() {
    super('the other side closed the connection');
  }
}

/** There is no upstream to try: all are out of service. */
export class NoneAvailableError extends Error {
  override readonly name = 'NoneAvailableError';

  constructor() {
    super('no upstream is in service');
  }
}

/** A customer has as many requests as it may, waiting for its share of the connections included. */
export class ShareExceededError extends Error {
  override readonly name = 'ShareExceededError';

  constructor() {
    super('the customer uses up its share of the connections (upstream.max_connections_per_customer)');
  }
}

export class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
  readonly code = 'ETIMEDOUT';
}

/** The gateway is closing: no connection is made any more. */
export class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError';
  readonly code = 'ECONNREFUSED';

  constructor() {
    super('the gateway is closing');
  }
}

const PROBLEMS_OF_FAILURES = {
  none_available: 'upstream_unavailable',
  refused: 'upstream_unavailable',
  connect_timeout: 'upstream_unavailable',
  share_exceeded: 'overloaded',
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

/**
 * The failure behind an error of a connection or of the system; undefined when the error is a bug of the gateway.
 * `begun`: the request had been given to a connection.
 */
export function classifyError(error: unknown, begun: boolean): UpstreamFailure | undefined {
  if (error instanceof InvalidAnswerError) return 'invalid_answer';
  if (error instanceof ShareExceededError) return 'share_exceeded';
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  if (BUG_CODE.test(error.code)) return undefined;
  if (begun) return 'reset';
  return error.code === 'ETIMEDOUT' ? 'connect_timeout' : 'refused';
}

/** Node.js's codes for our own mistakes; those of TLS and certificates are the other side's. */
const BUG_CODE = /^ERR_(?!TLS_|SSL_|SOCKET_|STREAM_)/;
