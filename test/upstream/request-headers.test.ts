import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildRequestHeaders, type RequestHeadersOptions } from '../../src/upstream/request-headers.ts';

const STRIP: RequestHeadersOptions = {
  credentials: 'strip',
  preserveHost: false,
  own: ['X-Tollgate-Customer', 'acme', 'X-Request-Id', 'r1', 'X-Forwarded-For', '192.0.2.1'],
  host: 'api.example.com',
  httpVersion: '1.1',
};
const OWN_AND_VIA = [...STRIP.own, 'Via', '1.1 tollgate'];

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
      expect(buildRequestHeaders([spelling, 'spoofed', 'Accept', '*/*'], STRIP)).toEqual([
        ...['Accept', '*/*'],
        ...OWN_AND_VIA,
      ]);
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
  buildRequestHeaders(fields, { ...STRIP, spoofed: () => spoofed++ });
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
  expect(buildRequestHeaders(fields, STRIP)).toEqual([...fields, ...OWN_AND_VIA]);
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
    expect(buildRequestHeaders(['A', '1', 'cOOkie', sent, 'B', '2'], STRIP)).toEqual([
      ...['A', '1', ...cookie, 'B', '2'],
      ...OWN_AND_VIA,
    ]);
  });
});

test('headers that Connection names are dropped, wherever it is, but never those of the gateway', () => {
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
  expect(buildRequestHeaders(fields, STRIP)).toEqual(['X-Kept', '1', ...OWN_AND_VIA]);
});

test('Via is extended with the version of the received request', () => {
  const headers = buildRequestHeaders(['Via', '1.1 a', 'X', '1', 'via', '2 b'], {
    ...STRIP,
    own: [],
    httpVersion: '1.0',
  });
  expect(headers).toEqual(['Via', '1.1 a', 'X', '1', 'via', '2 b', 'Via', '1.0 tollgate']);
});

test.each([
  ['strip', []],
  ['forward', ['AUTHORIZATION', 'Bearer theirs']],
  ['replace', ['Authorization', 'Basic ours']],
] as const)('credentials: %s', (credentials, expected) => {
  const headers = buildRequestHeaders(['AUTHORIZATION', 'Bearer theirs'], {
    ...STRIP,
    own: [],
    credentials,
    authorization: 'Basic ours',
  });
  expect(headers).toEqual([...expected, 'Via', '1.1 tollgate']);
});

test('the preserved Host is the requested authority, whatever the Host header says', () => {
  const preserving = { ...STRIP, own: [], preserveHost: true };
  expect(buildRequestHeaders(['Host', 'other.test'], preserving)).toEqual([
    'Host',
    'api.example.com',
    'Via',
    '1.1 tollgate',
  ]);
  expect(buildRequestHeaders(['Host', ''], { ...preserving, host: '' })).toEqual(['Via', '1.1 tollgate']);
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

test('whatever the client sends, of the forbidden names only the gateway gives any', () => {
  fc.assert(
    fc.property(FIELDS, (fields) => {
      const headers = buildRequestHeaders(fields, STRIP);
      const pairs = headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]]] : []));
      const forbidden = pairs.filter(([name = '']) => isForbidden(name)).flat();
      expect(forbidden).toEqual(STRIP.own);
      expect(headers.slice(-OWN_AND_VIA.length)).toEqual(OWN_AND_VIA);
    }),
  );
});

test('what passes is a part of what was sent, in its order', () => {
  fc.assert(
    fc.property(FIELDS, (fields) => {
      const passed = buildRequestHeaders(fields, STRIP).slice(0, -OWN_AND_VIA.length);
      let at = 0;
      for (let i = 0; i < passed.length; i += 2) {
        while (at < fields.length && (fields[at] !== passed[i] || fields[at + 1] !== passed[i + 1])) at += 2;
        expect(at).toBeLessThan(fields.length);
        at += 2;
      }
    }),
  );
});
