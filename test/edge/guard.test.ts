import { describe, expect, it } from 'vitest';
import { guard } from '../../src/edge/guard.ts';

const LIMITS = { headerBytes: 1000, headerCount: 10, targetBytes: 100 };

function verdict(url: string, rawHeaders = ['Host', 'api.example'], httpVersion = '1.1') {
  const result = guard({ url, rawHeaders, httpVersion }, LIMITS);
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
  ])('%s is taken apart without being changed', (url, path, query) => {
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

  it('is refused when it is too long, and taken at the limit', () => {
    expect(verdict(`/${'a'.repeat(99)}`)).toMatchObject({ passed: true });
    expect(verdict(`/${'a'.repeat(100)}`)).toBe('target_too_long');
  });

  it('in absolute form names the host, whatever the Host header says', () => {
    expect(verdict('http://one.example/x', ['Host', 'two.example'])).toMatchObject({ host: 'one.example' });
  });
});

describe('a body is refused', () => {
  it.each([
    ['Content-Length', '1', 'body_not_allowed'],
    ['content-length', '00', 'body_not_allowed'],
    ['Transfer-Encoding', 'chunked', 'body_not_allowed'],
    ['TRANSFER-ENCODING', 'Chunked', 'body_not_allowed'],
    ['Transfer-Encoding', 'gzip, chunked', 'not_implemented'],
    ['Transfer-Encoding', '', 'bad_request'],
  ])('%s: %s', (name, value, code) => {
    expect(verdict('/x', ['Host', 'a', name, value])).toBe(code);
  });

  it('but Content-Length: 0 is none', () => {
    expect(verdict('/x', ['Host', 'a', 'Content-Length', '0'])).toMatchObject({ passed: true });
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
  ])('%s is refused', (_, rawHeaders) => {
    expect(verdict('/x', rawHeaders)).toBe('bad_request');
  });

  it.each(['a', 'a:', 'a:80', '127.0.0.1:8080', '[::1]:8080'])('%s is taken', (host) => {
    expect(verdict('/x', ['Host', host])).toMatchObject({ passed: true, host });
  });

  it('may be missing in HTTP/1.0', () => {
    expect(verdict('/x', [], '1.0')).toMatchObject({ passed: true, host: '' });
  });
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
  const result = guard({ url: '*', rawHeaders: [], httpVersion: '1.1' }, LIMITS);
  expect(result).toMatchObject({ passed: false, problem: { headers: ['Connection', 'close'] } });
});
