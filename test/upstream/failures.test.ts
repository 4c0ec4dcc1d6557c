import { expect, test } from 'vitest';
import { classifyError, FAILURE_PROBLEMS } from '../../src/upstream/failures.ts';
import { ConnectionError } from '../../src/upstream/http1/connect.ts';
import { SHARE_EXCEEDED } from '../../src/upstream/http1/connection-pool.ts';
import { InvalidResponseError } from '../../src/upstream/http1/response-parser.ts';

const ended = new ConnectionError('ECONNRESET', 'the other side closed the connection');

function systemError(code: string): Error {
  return Object.assign(new Error(`something ${code}`), { code });
}

test.each<[Error, string | undefined]>([
  [systemError('ECONNREFUSED'), 'refused'],
  [systemError('ENOTFOUND'), 'refused'],
  [systemError('EHOSTUNREACH'), 'refused'],
  [systemError('ECONNRESET'), 'refused'],
  [systemError('ERR_TLS_CERT_ALTNAME_INVALID'), 'refused'],
  [Object.assign(new AggregateError([systemError('ECONNREFUSED')]), { code: 'ECONNREFUSED' }), 'refused'],
  [systemError('ETIMEDOUT'), 'connect_timeout'],
  [systemError('DEPTH_ZERO_SELF_SIGNED_CERT'), 'refused'],
  [systemError('ERR_SSL_WRONG_VERSION_NUMBER'), 'refused'],
  [new ConnectionError('ETIMEDOUT', 'no connection within 5 ms'), 'connect_timeout'],
  [ended, 'refused'],
  [new ConnectionError('POOL_CLOSED', 'the gateway is closing'), 'refused'],
  [SHARE_EXCEEDED, 'share_exceeded'],
  [systemError('ERR_INVALID_ARG_TYPE'), undefined],
  [new TypeError('x is not a function'), undefined],
])('before the request began, %s is %s', (error, failure) => {
  expect(classifyError(error, false)).toBe(failure);
});

test.each<[unknown, string | undefined]>([
  [systemError('ECONNRESET'), 'reset'],
  [systemError('EPIPE'), 'reset'],
  [systemError('ETIMEDOUT'), 'reset'],
  [systemError('ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC'), 'reset'],
  [ended, 'reset'],
  [new InvalidResponseError('status 999'), 'invalid_response'],
  [systemError('ERR_ASSERTION'), undefined],
  [systemError('ERR_HTTP_INVALID_HEADER_VALUE'), undefined],
  [new TypeError('x is not a function'), undefined],
  ['a string', undefined],
])('after it began, %s is %s', (error, failure) => {
  expect(classifyError(error, true)).toBe(failure);
});

test.each([
  ['refused', 'upstream_unavailable'],
  ['connect_timeout', 'upstream_unavailable'],
  ['dispatch_timeout', 'upstream_unavailable'],
  ['response_timeout', 'gateway_timeout'],
  ['total_timeout', 'gateway_timeout'],
  ['reset', 'bad_gateway'],
  ['invalid_response', 'bad_gateway'],
] as const)('%s is reported as %s', (failure, problem) => {
  expect(FAILURE_PROBLEMS[failure]).toBe(problem);
});
