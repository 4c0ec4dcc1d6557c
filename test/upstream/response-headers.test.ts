import { expect, test } from 'vitest';
import { buildResponseHeaders, CLEAN_REASON } from '../../src/upstream/response-headers.ts';

const NONE: ReadonlySet<string> = new Set();

test.each([
  ...['Connection', 'Keep-Alive', 'Proxy-Connection', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
  ...['Proxy-Authenticate', 'Proxy-Authorization', 'X-Tollgate-Customer', 'x_tollgate_plan', 'X-Tollgate_Key-Id'],
])('%s does not reach the client', (name) => {
  for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
    expect(buildResponseHeaders([spelling, 'x', 'ETag', '"1"'], 200, NONE, [])).toEqual(['ETag', '"1"']);
  }
});

test('fields keep name, order, repeats and bytes', () => {
  const raw = ['Set-Cookie', 'a', 'x-B', '\xff', 'set-cookie', 'b', 'WWW-Authenticate', 'Basic'];
  expect(buildResponseHeaders(raw, 200, NONE, [])).toEqual(raw);
});

test('own fields replace those of the same names, also where the gateway gives none this time', () => {
  const own = ['X-RateLimit-Limit', '1000'];
  const names = new Set(['x-ratelimit-limit', 'x-api-key-expires-at']);
  const raw = ['X-RATELIMIT-LIMIT', '7', 'X-Api-Key-Expires-At', 'never', 'x-ratelimit-limit', '8', 'A', '1'];
  expect(buildResponseHeaders(raw, 200, names, own)).toEqual(['A', '1', ...own]);
});

test('Connection cannot take away fields of the gateway', () => {
  const own = ['X-Request-Id', 'r1'];
  expect(buildResponseHeaders(['Connection', 'x-request-id, a', 'A', '1'], 200, NONE, own)).toEqual(own);
});

test('the first Date stays alone', () => {
  expect(buildResponseHeaders(['date', 'a', 'Date', 'b'], 200, NONE, [])).toEqual(['date', 'a']);
});

test.each([
  [200, ['Content-Length', '0']],
  [204, []],
  [304, ['Content-Length', '0']],
])('Content-Length in a %d', (status, expected) => {
  expect(buildResponseHeaders(['Content-Length', '0'], status, NONE, [])).toEqual(expected);
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
