import { errors } from 'undici';
import { expect, test } from 'vitest';
import { classifyError, failureProblem, InvalidAnswerError } from '../../src/upstream/failures.ts';

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
  [new errors.ConnectTimeoutError(), 'connect_timeout'],
  [new errors.ClientDestroyedError(), 'refused'],
  [new errors.ClientClosedError(), 'refused'],
  [new errors.InvalidArgumentError('invalid header'), undefined],
  [new TypeError('x is not a function'), undefined],
])('before the request began, %s is %s', (error, failure) => {
  expect(classifyError(error, false)).toBe(failure);
});

test.each<[unknown, string | undefined]>([
  [systemError('ECONNRESET'), 'reset'],
  [systemError('EPIPE'), 'reset'],
  [systemError('ETIMEDOUT'), 'reset'],
  [new errors.SocketError('other side closed'), 'reset'],
  [new errors.SocketError('bad response'), 'invalid_answer'],
  [new errors.SocketError('bad upgrade'), 'invalid_answer'],
  [new errors.HeadersOverflowError(), 'invalid_answer'],
  [new errors.ResponseContentLengthMismatchError(), 'invalid_answer'],
  [new errors.HTTPParserError('nonsense'), 'invalid_answer'],
  [new InvalidAnswerError('status 999'), 'invalid_answer'],
  [systemError('ERR_ASSERTION'), undefined],
  [new errors.NotSupportedError('no'), undefined],
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
  ['invalid_answer', 'bad_gateway'],
] as const)('%s is told as %s', (failure, problem) => {
  expect(failureProblem(failure)).toBe(problem);
});
