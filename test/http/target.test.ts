import { describe, expect, it } from 'vitest';
import { shareOfCases } from '../support/share-of-runs.ts';
import { get, head, useHttpSystem } from './support/system.ts';

const { expectPassed, expectRefused } = useHttpSystem();
/** Printable ASCII, and the space. */
const VISIBLE = Array.from({ length: 0x7f - 0x20 }, (_, index) => 0x20 + index);
const AUTHORIZATION = 'Authorization: Bearer KEY';

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

function hex(code: number): string {
  return code.toString(16).padStart(2, '0');
}

/** RFC 9112 §3.2. */
describe('the form of the target', () => {
  it.each(['http', 'https', 'HTTP', 'hTTpS'])(
    'absolute form is accepted with %s, and its host is no destination',
    async (scheme) => {
      for (const authority of ['evil.example', 'evil.example:99', '169.254.169.254', '[::1]:80', 'localhost']) {
        await expectPassed(
          head(`GET ${scheme}://${authority}/v1/conversations/a?b=c HTTP/1.1`, 'Host: api.example', AUTHORIZATION),
          '/api/v1/conversations/a?b=c',
        );
      }
    },
  );

  it.each(
    words(`
    ftp://a/v1/conversations ws://a/v1/conversations file:///v1/conversations http:/v1/conversations
    http:v1/conversations http:///v1/conversations http:////v1/conversations http://u@a/v1/conversations
    http://u:p@a/v1/conversations http://a#/v1/conversations http://a\\@b/v1/conversations
    http://a/v1/conversations#x javascript:1 urn:a:b data:,x
  `),
  )('absolute form with %s is refused', async (target) => {
    await expectRefused(get(target), 'bad_request');
  });

  it.each(
    words(`
    * a a:443 api.example:443 v1/conversations ? ?a=b ./v1/conversations ../v1/conversations
    \\v1\\conversations . .. @ : %2fv1/conversations "/v1/conversations" </v1/conversations>
  `),
  )('%s is refused, with any method', async (target) => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'CONNECT']) {
      await expectRefused(get(target).replace('GET', method), 'bad_request');
    }
  });

  it('bytes beyond ASCII, controls and a fragment are refused, wherever they stand', async () => {
    const codes = [...Array(0x20).keys(), 0x7f, ...Array.from({ length: 0x80 }, (_, i) => 0x80 + i)];
    for (const code of [...shareOfCases(codes), 0x23]) {
      const byte = String.fromCharCode(code);
      for (const target of [`/v1/conversations/a${byte}b`, `/v1/conversations?a${byte}b`, `${byte}/v1/conversations`]) {
        if (code === 0x0a && target.startsWith(byte)) continue; // that is two lines, and the first one none
        await expectRefused(get(target), 'bad_request');
      }
    }
  });
});

describe('a path is allowed by its bytes', () => {
  const spellings = (path: string) => [...path].map((_, at) => at);
  const PATHS = ['/v1/conversations', '/api/v1/conversations'];
  /** With a share of the cases, each position of a path gets other ones. */
  const rotated = (cases: readonly string[], by: number) => {
    const first = by % cases.length;
    return [...cases.slice(first), ...cases.slice(0, first)];
  };

  it.each(PATHS)(
    '%s with any one character in another case, encoded, doubled, left out or replaced is another one',
    async (path) => {
      for (const at of spellings(path)) {
        const character = path.charAt(at);
        const [before, after] = [path.slice(0, at), path.slice(at + 1)];
        const encoded = hex(character.charCodeAt(0));
        const others = new Set([
          character.toUpperCase(),
          `%${encoded}`,
          `%${encoded.toUpperCase()}`,
          `%25${encoded}`,
          `%u00${encoded}`,
          character + character,
          '',
          '\\',
          '%5c',
          '%2f',
          '.',
          '%00',
          ';',
          'x',
          `${character};a=b`,
        ]);
        others.delete(character);
        for (const other of shareOfCases(rotated([...others], at))) {
          const target = before + other + after;
          if (target === '/v1/conversations' || target === '/api/v1/conversations') continue;
          await expectRefused(get(target), 'bad_request', 'not_found');
        }
      }
    },
  );

  it.each(
    words(`
    / // /. /.. /./ /../ /%2e /%2e%2e /.%2e /%2E. /%2f /..%2f /..;/ /; ; /a/ /a/b /a// /a/. /a/.. /a/../
    /a/..%2f /a%2f.. /..\\ /..%5c /a%5cb /a\\b /% /%2 /%zz /%% /%25 /%252e /%252f /%c0%ae /%c0%af
    /%e0%80%af /%ff /%80 /%ed%a0%80 /%00 /a%00 /%0a /%0d%0a /%7f /%c2%85 /%41 /%7e /a;b /a; /;a /a%3bb
    /" /< /> /^ /{ /| /} /[ /] /a%u002f /../../etc/passwd /%2e%2e/%2e%2e/etc/passwd /....// /..%00/
    /..%0d/ /..%ff /x/%2e%2e/
  `),
  )('what follows the list must not be %s', async (suffix) => {
    for (const path of PATHS) {
      await expectRefused(get(path + suffix), 'bad_request', 'not_found');
      await expectRefused(get(`http://api.example${path}${suffix}`), 'bad_request', 'not_found');
    }
  });

  it.each(
    words(`
    / // /. /./ /.. /../ /x/../ /%2e/ /%2e%2e/ //evil.example /\\ /%2f /api /api/api /v1 /v1/v1
    /api/v1/api /; /v2/.. /http:/ /http://a
  `),
  )('what stands before it must not be %s', async (prefix) => {
    for (const path of PATHS) {
      const target = prefix + path;
      if (target === '/api/v1/conversations') continue;
      await expectRefused(get(target), 'bad_request', 'not_found');
    }
  });

  it.each(
    words(`
    /metrics /livez /readyz /status /admin/v1/customers /console /.well-known/jwks.json
    /api/v2/conversations /v2/conversations /V1/conversations /v1/conversation /v1/Conversations
    /v1.0/conversations /v01/conversations /api/v1/messages /favicon.ico /robots.txt /api /v1 /
  `),
  )('%s is nothing here', async (path) => {
    await expectRefused(get(path), 'not_found');
  });

  it('every other byte of an id passes as it was sent', async () => {
    const plain = "ABCXYZabcxyz0189-._~!$&'()*+,=:@";
    for (const character of shareOfCases([...plain]))
      await expectPassed(get(`/v1/conversations/x${character}`), `/api/v1/conversations/x${character}`);
    for (const code of shareOfCases(VISIBLE)) {
      const character = String.fromCharCode(code);
      for (const encoded of new Set([`%${hex(code)}`, `%${hex(code).toUpperCase()}`])) {
        const target = `/v1/conversations/${encoded}`;
        if (/[A-Za-z0-9._~/\\%;-]/.test(character)) await expectRefused(get(target), 'bad_request');
        else await expectPassed(get(target), `/api${target}`);
      }
    }
    for (const id of [
      'caf%C3%A9',
      'caf%c3%a9',
      '%F0%9F%98%80',
      '%e2%82%ac',
      'v1',
      'api',
      'conversations',
      '...',
      '.a',
      'a..',
      '-',
      '%20',
      'a%20b',
      '@me',
      ':id',
      '*',
      '~',
    ]) {
      await expectPassed(get(`/api/v1/conversations/${id}`), `/api/v1/conversations/${id}`);
    }
  });

  it('a dot segment is malformed, at any position', async () => {
    for (const path of [
      '/.',
      '/..',
      '/./v1/conversations',
      '/v1/../v1/conversations',
      '/v1/./conversations',
      '/v1/conversations/.',
      '/v1/conversations/../x',
    ]) {
      await expectRefused(get(path), 'bad_request');
    }
  });

  it('an id has at most 512 bytes', async () => {
    await expectPassed(get(`/v1/conversations/${'x'.repeat(512)}`));
    await expectRefused(get(`/v1/conversations/${'x'.repeat(513)}`), 'not_found');
    await expectRefused(get(`/v1/conversations/${'%20'.repeat(171)}`), 'not_found');
  });

  it('the query passes as it was sent, whatever its content', async () => {
    for (const code of shareOfCases(VISIBLE.filter((each) => each !== 0x20 && each !== 0x23))) {
      const query = `?${String.fromCharCode(code)}=%${hex(code)}&..%2f../${String.fromCharCode(code)}`;
      await expectPassed(get(`/v1/conversations${query}`), `/api/v1/conversations${query}`);
    }
    for (const query of [
      '?',
      '??',
      '?a',
      '?a=b&a=b',
      '?/../..',
      '?http://evil.example/',
      '?%',
      '?%zz',
      '?%00%0d%0a',
      '?;a',
    ]) {
      await expectPassed(get(`/v1/conversations/a${query}`), `/api/v1/conversations/a${query}`);
    }
  });

  it('a trailing slash gets the correct form, and no redirect', async () => {
    const answer = await expectRefused(get('/v1/conversations/'), 'not_found');
    expect(JSON.parse(answer?.content ?? '').detail).toContain('/api/v1/conversations');
  });
});
