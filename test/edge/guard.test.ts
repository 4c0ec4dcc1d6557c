import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { guard, hideTarget } from '../../src/edge/guard.ts';

const LIMITS = { headerBytes: 1000, headerCount: 10, targetBytes: 100 };

function verdict(url: string, rawHeaders = ['Host', 'api.example'], httpVersion = '1.1', method = 'GET') {
  const result = guard({ originalUrl: url, method, rawHeaders, httpVersion }, LIMITS);
  return result.passed ? result : result.problem.code;
}

describe('a target', () => {
  it.each([
    ['/v1/conversations', '/v1/conversations', ''],
    ['/v1/conversations?', '/v1/conversations', '?'],
    ['/v1/conversations?a=%2e%2f&b=/../\\x?y', '/v1/conversations', '?a=%2e%2f&b=/../\\x?y'],
    ['http://evil.example/v1/conversations?x=1', '/v1/conversations', '?x=1'],
    ['HTTP://evil.example:99', '/', ''],
    ['https://evil.example?x', '/', '?x'],
  ])('%s is split without being changed', (url, path, query) => {
    expect(verdict(url)).toMatchObject({ passed: true, path, query });
  });

  it.each([
    '*',
    'api.example:443',
    '',
    'v1/conversations',
    'ftp://x/v1',
    'http://user@evil/v1',
    'http:///v1',
    '/a#b',
    '/a?b#c',
    '/a?\u00e9',
  ])('%s is refused', (url) => {
    expect(verdict(url)).toBe('bad_request');
  });

  it('is refused when it is too long, and accepted at the limit', () => {
    expect(verdict(`/${'a'.repeat(99)}`)).toMatchObject({ passed: true });
    expect(verdict(`/${'a'.repeat(100)}`)).toBe('target_too_long');
  });

  it('in absolute form names the host, whatever the Host header says', () => {
    expect(verdict('http://one.example/x', ['Host', 'two.example'])).toMatchObject({ host: 'one.example' });
  });
});

describe.each(['GET', 'HEAD'])('a body of %s is refused', (method) => {
  it.each([
    ['Content-Length', '1', 'body_not_allowed'],
    ['content-length', '00', 'body_not_allowed'],
    ['Transfer-Encoding', 'chunked', 'body_not_allowed'],
    ['TRANSFER-ENCODING', 'Chunked', 'body_not_allowed'],
    ['Transfer-Encoding', 'gzip, chunked', 'not_implemented'],
    ['Transfer-Encoding', '', 'bad_request'],
  ])('%s: %s', (name, value, code) => {
    expect(verdict('/x', ['Host', 'a', name, value], '1.1', method)).toBe(code);
  });

  it('but Content-Length: 0 is none', () => {
    const passed = verdict('/x', ['Host', 'a', 'Content-Length', '0'], '1.1', method);
    expect(passed).toMatchObject({ passed: true, body: { isChunked: false, length: undefined } });
  });
});

describe.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PROPFIND'])('the body of %s', (method) => {
  it.each([
    [[], false, undefined],
    [['Content-Length', '0'], false, 0],
    [['content-length', '5'], false, 5],
    [['CONTENT-LENGTH', '005'], false, 5],
    [['Transfer-Encoding', 'chunked'], true, undefined],
    [['TRANSFER-ENCODING', 'Chunked'], true, undefined],
  ])('%j is unambiguous', (fields, isChunked, length) => {
    const passed = verdict('/x', ['Host', 'a', ...fields], '1.1', method);
    expect(passed).toMatchObject({ passed: true, body: { isChunked, length } });
  });

  it.each([
    ['Content-Length', '5', 'Content-Length', '5'],
    ['Content-Length', '0', 'content-length', '0'],
    ['Content-Length', '5', 'Content-Length', '6'],
    ['Content-Length', '5', 'Transfer-Encoding', 'chunked'],
    ['Transfer-Encoding', 'chunked', 'Content-Length', '0'],
    ['Transfer-Encoding', 'chunked', 'transfer-encoding', 'chunked'],
    ...['', '-1', '+1', '0x1', '1e1', '1.0', '1, 1', '1 1', '\u0661', '1'.repeat(21)].map((length) => [
      'Content-Length',
      length,
    ]),
  ])('%s: %j is ambiguous or none (%s %s)', (...fields) => {
    expect(verdict('/x', ['Host', 'a', ...fields], '1.1', method)).toBe('bad_request');
  });

  it.each(['chunked, chunked', 'gzip, chunked', 'chunked;q=1', 'identity', 'xchunked', 'chunked\x0b'])(
    'has no coding %j',
    (coding) => {
      expect(verdict('/x', ['Host', 'a', 'Transfer-Encoding', coding], '1.1', method)).toBe('not_implemented');
    },
  );

  it('has no transfer coding in HTTP/1.0', () => {
    expect(verdict('/x', ['Transfer-Encoding', 'chunked'], '1.0', method)).toBe('bad_request');
    expect(verdict('/x', ['Content-Length', '5'], '1.0', method)).toMatchObject({ body: { length: 5 } });
  });
});

describe('Host', () => {
  it.each([
    ['none', []],
    ['an empty one', ['Host', '']],
    ['two', ['Host', 'a', 'host', 'a']],
    ['userinfo', ['Host', 'user@a']],
    ['a path', ['Host', 'a/b']],
    ['a list', ['Host', 'a, b']],
    ['a list without spaces', ['Host', 'a,b']],
    ['an escape', ['Host', 'a%2eb']],
    ['a port alone', ['Host', ':80']],
    ['a port out of range', ['Host', 'a:65536']],
    ['brackets around no address', ['Host', '[1.2.3.4]']],
  ])('%s is refused', (_, rawHeaders) => {
    expect(verdict('/x', rawHeaders)).toBe('bad_request');
  });

  it.each(['a', 'a:', 'a:80', 'a:65535', 'a_b.c-d~e', '127.0.0.1:8080', '[::1]', '[::1]:8080'])(
    '%s is accepted',
    (host) => {
      expect(verdict('/x', ['Host', host])).toMatchObject({ passed: true, host });
    },
  );

  it('may be missing in HTTP/1.0', () => {
    expect(verdict('/x', [], '1.0')).toMatchObject({ passed: true, host: '' });
  });
});

describe('Expect', () => {
  it.each(['100-continue', '100-Continue', ''])('%j can be met', (value) => {
    expect(verdict('/x', ['Host', 'a', 'Expect', value])).toMatchObject({ passed: true });
  });

  it.each(['200-ok', '100-continue, x', '100'])('%j cannot', (value) => {
    expect(verdict('/x', ['Host', 'a', 'expect', value])).toBe('expectation_failed');
  });
});

it('the target is hidden from what comes after, and kept for the guard', () => {
  const request = { url: '//evil/v1', originalUrl: undefined, rawHeaders: ['Host', 'a'], httpVersion: '1.1' };
  hideTarget(request);
  expect(request).toMatchObject({ url: '/', originalUrl: '//evil/v1' });
  expect(guard(request, LIMITS)).toMatchObject({ passed: true, path: '//evil/v1' });
});

it.each(['0.9', '2.0', '1.2'])('HTTP/%s is refused', (version) => {
  expect(verdict('/x', ['Host', 'a'], version)).toBe('bad_request');
});

it('header fields are limited in number and in bytes', () => {
  const fields = (count: number, value: string) => [
    'Host',
    'a',
    ...Array(count - 1)
      .fill(['X-Y', value])
      .flat(),
  ];
  expect(verdict('/x', fields(10, 'v'))).toMatchObject({ passed: true });
  expect(verdict('/x', fields(11, 'v'))).toBe('headers_too_large');
  expect(verdict('/x', ['Host', 'a', 'X', 'v'.repeat(986)])).toMatchObject({ passed: true });
  expect(verdict('/x', ['Host', 'a', 'X', 'v'.repeat(987)])).toBe('headers_too_large');
});

it('every refusal of the guard closes the connection', () => {
  const result = guard({ originalUrl: '*', rawHeaders: [], httpVersion: '1.1' }, LIMITS);
  expect(result).toMatchObject({ passed: false, problem: { headers: ['Connection', 'close'] } });
});

const TARGET_PIECE = fc.constantFrom(
  ...[
    '/',
    '.',
    '..',
    '%2e',
    '%2f',
    '%zz',
    '%c3%a9',
    '?',
    '#',
    '@',
    ':80',
    'http://',
    'https://',
    'a',
    '[::1]',
    '\\',
    '"',
    ' ',
    '\0',
    '\xe9',
  ],
);
const FIELD_NAME = fc.constantFrom(
  ...['Host', 'host', 'Content-Length', 'CONTENT-LENGTH', 'Transfer-Encoding', 'Expect', 'X-A', 'Via', 'Cookie'],
);
const FIELD_VALUE = fc.oneof(
  fc.constantFrom(
    ...['', '0', '00', '5', 'chunked', 'chunked', 'a', 'a,b', 'a:80', 'u@a', '[::1]', '100-continue', 'x'],
  ),
  fc.string({ maxLength: 6 }),
);

it('whatever passes is a path in good order, a plain query, one host at most and one framing at most', () => {
  const host = /^(?:[\w.~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;
  let passed = 0;
  let bodies = 0;
  fc.assert(
    fc.property(
      fc
        .tuple(fc.constantFrom('', '/', '/v1/', 'http://a/'), fc.array(TARGET_PIECE, { maxLength: 4 }))
        .map(([start, pieces]) => start + pieces.join('')),
      fc
        .tuple(
          fc.constantFrom<string[]>([], ['Host', 'a'], ['Host', 'a']),
          fc.oneof(
            fc.array(fc.tuple(FIELD_NAME, FIELD_VALUE), { maxLength: 3 }),
            fc.constantFrom([['Content-Length', '5']], [['Transfer-Encoding', 'chunked']]),
          ),
        )
        .map(([host, pairs]) => [...host, ...pairs.flat()]),
      fc.constantFrom('1.1', '1.0', '0.9', '2.0'),
      fc.constantFrom('GET', 'HEAD', 'POST'),
      (originalUrl, rawHeaders, httpVersion, method) => {
        const result = guard({ originalUrl, method, rawHeaders, httpVersion }, LIMITS);
        if (!result.passed) return;
        passed++;
        const values = (name: string) =>
          rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
        expect(originalUrl.endsWith(result.path === '/' ? result.query : result.path + result.query)).toBe(true);
        expect(result.path).toMatch(/^\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*$/i);
        expect(result.path.split('/').filter((segment) => segment === '.' || segment === '..')).toEqual([]);
        expect(result.query).toMatch(/^(?:\?[!"$-~]*)?$/);
        expect(values('host').length).toBeLessThanOrEqual(1);
        expect(result.host === '' ? httpVersion === '1.0' : host.test(result.host)).toBe(true);
        const framing = [...values('content-length'), ...values('transfer-encoding')];
        if (method === 'POST') {
          expect(framing.length).toBeLessThanOrEqual(1);
          const isChunked = httpVersion === '1.1' && values('transfer-encoding')[0] === 'chunked';
          const [length] = values('content-length');
          if (length !== undefined) expect(length).toMatch(/^[0-9]+$/);
          expect(result.body).toEqual({ isChunked, length: length === undefined ? undefined : Number(length) });
          bodies += framing.length;
        } else {
          expect(framing.filter((value) => value !== '0')).toEqual([]);
          expect(result.body).toEqual({ isChunked: false, length: undefined });
        }
        expect(values('expect').filter((value) => value !== '' && value !== '100-continue')).toEqual([]);
      },
    ),
    { numRuns: 20_000 },
  );
  expect(passed).toBeGreaterThan(200);
  expect(bodies).toBeGreaterThan(100);
});
