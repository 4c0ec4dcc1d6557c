import { expect, test } from 'vitest';
import { CLEAN_REASON, createResponseFilter } from '../../src/upstream/response-headers.ts';
import { headersIn, linesOf } from './support/header-lines.ts';

const NONE: ReadonlySet<string> = new Set();

function kept(received: readonly string[], status = 200, ownNames = NONE): string[] {
  return headersIn(createResponseFilter(ownNames)(linesOf(received), status));
}

test.each([
  ...['Connection', 'Keep-Alive', 'Proxy-Connection', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
  ...['Proxy-Authenticate', 'Proxy-Authorization', 'X-Tollgate-Customer', 'x_tollgate_plan', 'X-Tollgate_Key-Id'],
])('%s does not reach the client', (name) => {
  for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
    expect(kept([spelling, 'x', 'ETag', '"1"'])).toEqual(['ETag', '"1"']);
  }
});

test('fields keep name, order, repeats and bytes', () => {
  const raw = ['Set-Cookie', 'a', 'x-B', '\xff', 'set-cookie', 'b', 'WWW-Authenticate', 'Basic'];
  expect(kept(raw)).toEqual(raw);
});

test('fields that only the gateway sets do not pass', () => {
  const names = new Set(['x-ratelimit-limit', 'x-api-key-expires-at']);
  const raw = ['X-RATELIMIT-LIMIT', '7', 'X-Api-Key-Expires-At', 'never', 'x-ratelimit-limit', '8', 'A', '1'];
  expect(kept(raw, 200, names)).toEqual(['A', '1']);
});

test('fields that Connection names do not pass', () => {
  expect(kept(['Connection', 'x-request-id, a', 'A', '1', 'B', '2'])).toEqual(['B', '2']);
});

test('the first Date stays alone', () => {
  expect(kept(['date', 'a', 'Date', 'b'])).toEqual(['date', 'a']);
});

test.each([
  [200, ['Content-Length', '0']],
  [204, []],
  [304, ['Content-Length', '0']],
])('Content-Length in a %d', (status, expected) => {
  expect(kept(['Content-Length', '0'], status)).toEqual(expected);
});

test.each([
  ['Not Found', true],
  ['a\tb', true],
  ['', false],
  ['a\x07b', false],
  ['a\x7fb', false],
  ['a\r\nX: y', false],
  ['é', false],
])('whether the reason phrase %j can be passed: %s', (phrase, isClean) => {
  expect(CLEAN_REASON.test(phrase)).toBe(isClean);
});
