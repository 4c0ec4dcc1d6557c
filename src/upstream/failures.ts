import type { ProblemCode } from '../http/problems/table.ts';
import { SHARE_EXCEEDED } from './http1/connection-pool.ts';
import { InvalidResponseError } from './http1/response-parser.ts';

/** The failures, and the problem code that the client gets for each. */
export const FAILURE_PROBLEMS = {
  /** No upstream is in service; nothing was sent. */
  none_available: 'upstream_unavailable',
  /** No connection could be made: refused, unreachable, unknown host, TLS. */
  refused: 'upstream_unavailable',
  connect_timeout: 'upstream_unavailable',
  /** The customer's share of the connections is used up; nothing was sent. */
  share_exceeded: 'overloaded',
  /** The deadline for sending the request passed first; nothing was sent. */
  dispatch_timeout: 'upstream_unavailable',
  /** The request was sent, but no response head arrived in time. */
  response_timeout: 'gateway_timeout',
  /** The backend stopped in the middle of its response: the client has its head. */
  idle_timeout: 'gateway_timeout',
  total_timeout: 'gateway_timeout',
  /** The connection closed before the response was complete. */
  reset: 'bad_gateway',
  /** The upstream sent something other than a valid HTTP/1.1 response. */
  invalid_response: 'bad_gateway',
  /** The client's fault, as are the following: its request body is longer than allowed. */
  body_too_large: 'body_too_large',
  /** The client sent its body too slowly. */
  body_timeout: 'request_timeout',
  /** The rest of the body cannot be parsed, or the client ended its side of the connection within it. */
  body_malformed: 'bad_request',
} as const satisfies Record<string, ProblemCode>;

/** Why a request got no complete response from the upstream. */
export type UpstreamFailure = keyof typeof FAILURE_PROBLEMS;

/** Returns whether the client caused the failure, by its request body. */
export function isClientFault(failure: UpstreamFailure): boolean {
  return failure.startsWith('body_');
}

/**
 * Returns the failure behind an error of a connection or of the system; undefined if the error is a bug of the gateway.
 * `hadConnection`: the request had been handed to a connection.
 */
export function classifyError(error: unknown, hadConnection: boolean): UpstreamFailure | undefined {
  if (error instanceof InvalidResponseError) return 'invalid_response';
  if (error === SHARE_EXCEEDED) return 'share_exceeded';
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  if (BUG_CODE.test(error.code)) return undefined;
  if (hadConnection) return 'reset';
  return error.code === 'ETIMEDOUT' ? 'connect_timeout' : 'refused';
}

/** Node.js error codes that mean a bug of the gateway. Codes of TLS, sockets and streams mean a connection failure. */
const BUG_CODE = /^ERR_(?!TLS_|SSL_|SOCKET_|STREAM_)/;
