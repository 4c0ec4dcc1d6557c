import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerPolicy, passedHeaders } from '../../src/upstream/request-headers.ts';
import { headersIn } from './support/header-lines.ts';

const STRIP = headerPolicy({ credentials: 'strip', preserveHost: false }, ['Authorization']);

function passed(rawHeaders: readonly string[], policy = STRIP): string[] {
  return headersIn(passedHeaders(rawHeaders, policy));
}

describe('fields of the client that never reach the upstream', () => {
  test.each([
    ...['Connection', 'Keep-Alive', 'Proxy-Connection', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
    ...['Proxy-Authorization', 'HTTP2-Settings', 'Host', 'Authorization', 'Content-Length', 'Expect', 'Forwarded'],
    ...['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'X-Forwarded-Anything'],
    ...['X-Real-IP', 'X-Original-URL', 'X-Rewrite-URL', 'X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'],
    ...['X-Forwarded', 'X-Original-URI', 'X-Original-Host', 'Proxy'],
    ...['Client-IP', 'True-Client-IP', 'X-Client-IP', 'X-Cluster-Client-IP', 'CF-Connecting-IP', 'CF-Connecting-IPv6'],
    ...['Fastly-Client-IP', 'X-Originating-IP', 'X-Remote-IP', 'X-Remote-Addr', 'Remote-Addr'],
    ...['Remote-User', 'Remote-Groups', 'Remote-Name', 'Remote-Email', 'X-Remote-User', 'X-Remote-Group'],
    ...['X-Request-Id', 'X-Tollgate-Customer', 'X-Tollgate-Plan', 'X-Tollgate-Assertion', 'X-Tollgate-Unheard-Of'],
  ])('%s, in any case and with any other character for the hyphen', (name) => {
    const others = ['_', '.', '~', '!', '|'].map((character) => name.replaceAll('-', character));
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase(), ...others]) {
      expect(passed([spelling, 'spoofed', 'Accept', '*/*'])).toEqual(['Accept', '*/*']);
    }
  });
});

test('forged identity headers are reported, others not', () => {
  let spoofed = 0;
  const fields = [
    'X-Tollgate-Plan',
    'a',
    'x_tollgate_plan',
    'b',
    'X-Forwarded-For',
    'c',
    'Forwarded',
    'd',
    'X-Tollgates',
    'e',
  ];
  passedHeaders(fields, STRIP, () => spoofed++);
  expect(spoofed).toBe(2);
});

test('other fields pass as they are: names, order, repeats, Cookie and traceparent', () => {
  const fields = [
    ...[
      'accept',
      'a',
      'X-B',
      '1',
      'Cookie',
      'c=1',
      'x-b',
      '2',
      'traceparent',
      '00-0af7651916cd43dd8448eb211c80319c-01',
    ],
    ...['If-None-Match', '"x"', 'X_Odd', '', 'X-Tollgates', 'no', 'X-Forward', 'no', 'Accept', 'b'],
  ];
  expect(passed(fields)).toEqual(fields);
});

const OTHERS = 'a=tollgate_session=x; my_tollgate_session=y; __Host-a; TOLLGATE_session=z';

describe("the console's cookies never reach the upstream, and the rest of a Cookie header is unchanged", () => {
  test.each([
    ['tollgate_session=x', undefined],
    ['tollgate_session', undefined],
    ['__Host-tollgate_session=x; tollgate_session=y;', undefined],
    ['a=1; tollgate_session=x', 'a=1'],
    ['tollgate_session=x; a=1;b="2" ; c', 'a=1;b="2" ; c'],
    ['a=1; __Host-tollgate_session=x; tollgate_other=y;tollgate_=;b=2', 'a=1;b=2'],
    ['a=1;\t tollgate_session=x\t;  b=2;', 'a=1;  b=2;'],
    ['tollgate_a=1; tollgate_b=2; c=3; tollgate_d=4', 'c=3'],
    [OTHERS, OTHERS],
  ])('%j', (sent, kept) => {
    const cookie = kept === undefined ? [] : ['cOOkie', kept];
    expect(passed(['A', '1', 'cOOkie', sent, 'B', '2'])).toEqual(['A', '1', ...cookie, 'B', '2']);
  });
});

test('headers that Connection names are dropped, wherever it is', () => {
  const fields = [
    ...[
      'X-Before',
      '1',
      'Connection',
      'X-before, x-request-id',
      'connection',
      ' X-TOLLGATE-CUSTOMER ,,x-forwarded-for',
    ],
    ...['CONNECTION', 'close, X-After, via', 'x-after', '1', 'X-Kept', '1'],
  ];
  expect(passed(fields)).toEqual(['X-Kept', '1']);
});

test.each([
  ['strip', []],
  ['forward', ['AUTHORIZATION', 'Bearer theirs']],
  ['replace', ['Authorization', 'Basic ours']],
] as const)('credentials: %s', (credentials, expected) => {
  const policy = headerPolicy({ credentials, authorization: 'Basic ours', preserveHost: false }, ['Authorization']);
  expect(passed(['AUTHORIZATION', 'Bearer theirs'], policy)).toEqual(expected);
});

const TOKEN = fc.string({
  unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~^|'),
  minLength: 1,
  maxLength: 20,
});
/** Every spelling of names that matter, besides any name at all. */
const NAME = fc.oneof(
  TOKEN,
  fc
    .tuple(
      fc.constantFrom(
        'x-tollgate-customer',
        'x-tollgate-',
        'x-forwarded-for',
        'forwarded',
        'authorization',
        'connection',
      ),
      fc.func(fc.nat(3)),
    )
    .map(([name, vary]) =>
      [...name]
        .map((character, i) => {
          const choice = vary(i);
          if (choice === 0) return character.toUpperCase();
          return choice === 1 && character === '-' ? '_' : character;
        })
        .join(''),
    ),
);
const FIELDS = fc
  .array(fc.tuple(NAME, fc.oneof(TOKEN, fc.constant('x-tollgate-customer, via'))))
  .map((pairs) => pairs.flat());

/** Written apart from the code under test: the rule as a reader of the documentation would put it. */
function isForbidden(name: string): boolean {
  const comparable = name.replace(/_/g, '-');
  return /^(x-(tollgate|forwarded)-.*|authorization|forwarded|connection|host|x-request-id)$/i.test(comparable);
}

test('whatever the client sends, none of the forbidden names passes', () => {
  fc.assert(
    fc.property(FIELDS, (fields) => {
      const names = passed(fields).filter((_, i) => i % 2 === 0);
      expect(names.filter(isForbidden)).toEqual([]);
    }),
  );
});

test('what passes is a part of what was sent, in its order', () => {
  fc.assert(
    fc.property(FIELDS, (fields) => {
      const kept = passed(fields);
      let at = 0;
      for (let i = 0; i < kept.length; i += 2) {
        while (at < fields.length && (fields[at] !== kept[i] || fields[at + 1] !== kept[i + 1])) at += 2;
        expect(at).toBeLessThan(fields.length);
        at += 2;
      }
    }),
  );
});

const KEY_HEADERS = ['X-API-Key', 'Authorization', 'api_token'];
/** A listed name, with any of its letters in the other case, and anything that is no letter or digit between them. */
const LISTED = fc
  .tuple(fc.constantFrom(...KEY_HEADERS), fc.func(fc.boolean()), fc.constantFrom(..."-_.!~^|*+#$%&'`"))
  .map(([name, isUpper, separator]) =>
    [...name]
      .map((character, i) => (isUpper(i) ? character.toUpperCase() : character.toLowerCase()))
      .join('')
      .replace(/[-_]/g, (hyphen, i) => (isUpper(-i) ? hyphen : separator)),
  );

test.each(['strip', 'replace'] as const)('credentials: %s: in no spelling does a key pass', (credentials) => {
  const policy = headerPolicy({ credentials, authorization: 'Basic ours', preserveHost: false }, KEY_HEADERS);
  const fields = fc.array(
    fc.oneof(
      fc.tuple(LISTED, fc.constant('the-key')),
      fc.tuple(TOKEN, fc.constant('other')),
      fc.constant(['Connection', 'x-api-key, authorization'] as const),
    ),
  );
  fc.assert(
    fc.property(fields, (pairs) => {
      expect(passed(pairs.flat(), policy)).not.toContain('the-key');
    }),
  );
});

test('credentials: forward: the listed spelling passes, in any case, and no other one', () => {
  const policy = headerPolicy({ credentials: 'forward', preserveHost: false }, KEY_HEADERS);
  fc.assert(
    fc.property(LISTED, (name) => {
      const isListed = KEY_HEADERS.some((listed) => listed.toLowerCase() === name.toLowerCase());
      expect(passed([name, 'the-key'], policy)).toEqual(isListed ? [name, 'the-key'] : []);
    }),
  );
});
