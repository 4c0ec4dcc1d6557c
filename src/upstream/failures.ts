import type { ProblemCode } from '../problems/table.ts';
import { SHARE_EXCEEDED } from './http1/connection-pool.ts';
import { InvalidResponseError } from './http1/response-parser.ts';

/** Why a request got no complete response from the upstream. */
export type UpstreamFailure =
  /** No upstream is in service; nothing was sent. */
  | 'none_available'
  /** No connection could be made: refused, unreachable, unknown host, TLS. */
  | 'refused'
  | 'connect_timeout'
  /** The customer's share of the connections is used up; nothing was sent. */
  | 'share_exceeded'
  /** The deadline for sending the request passed first; nothing was sent. */
  | 'dispatch_timeout'
  /** The request was sent, but no response head arrived in time. */
  | 'response_timeout'
  | 'total_timeout'
  /** The connection closed before the response was complete. */
  | 'reset'
  /** The upstream sent something other than a valid HTTP/1.1 response. */
  | 'invalid_answer';

/** The problem code that the client gets for a failure. */
export const FAILURE_PROBLEMS = {
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

/**
 * Returns the failure behind an error of a connection or of the system; undefined if the error is a bug of the gateway.
 * `begun`: the request had been handed to a connection.
 */
export function classifyError(error: unknown, begun: boolean): UpstreamFailure | undefined {
  if (error instanceof InvalidResponseError) return 'invalid_answer';
  if (error === SHARE_EXCEEDED) return 'share_exceeded';
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  if (BUG_CODE.test(error.code)) return undefined;
  if (begun) return 'reset';
  return error.code === 'ETIMEDOUT' ? 'connect_timeout' : 'refused';
}

/** Node.js error codes that mean a bug of the gateway. Codes of TLS, sockets and streams mean a connection failure. */
const BUG_CODE = /^ERR_(?!TLS_|SSL_|SOCKET_|STREAM_)/;
