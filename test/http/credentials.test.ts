import { describe, expect, it } from 'vitest';
import { fieldValues } from './support/http-reader.ts';
import { head, useHttpSystem } from './support/system.ts';

const { expectPassed, expectRefused } = useHttpSystem({ config: { auth: { failures_per_minute: 10_000 } } });
const BARE = 'Bearer realm="api"';

function withFields(...fields: string[]): string {
  return head('GET /v1/conversations HTTP/1.1', 'Host: a', ...fields);
}

/** RFC 6750 §3. */
describe('credentials', () => {
  it.each([
    ['none', []],
    ['an empty header', ['Authorization:']],
    ['Basic', ['Authorization: Basic dXNlcjpwYXNzd29yZA==']],
    ['Digest', ['Authorization: Digest username="x"']],
    ['DPoP', ['Authorization: DPoP KEY']],
    ['the key alone', ['Authorization: KEY']],
    ['another scheme that begins alike', ['Authorization: BearerX KEY']],
    ['a colon after the scheme', ['Authorization: Bearer: KEY']],
    ['a tab after the scheme', ['Authorization: Bearer\tKEY']],
    ['the key in another header', ['X-Api-Key: KEY']],
    ['the key in a cookie', ['Cookie: Authorization=Bearer KEY']],
    ["a proxy's credentials", ['Proxy-Authorization: Bearer KEY']],
    ['a name that only looks like it', ['Authorization_: Bearer KEY']],
  ])('%s: missing, without an error attribute', async (_, fields) => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await expectRefused(withFields(...fields).replace('GET', method), 'missing_key');
      expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([BARE]);
    }
  });

  it.each([
    ['two headers', ['Authorization: Bearer KEY', 'Authorization: Bearer KEY']],
    ['two headers in different case', ['Authorization: Bearer KEY', 'aUTHORIZATION: Basic x']],
    ['an empty second one', ['Authorization: Bearer KEY', 'Authorization:']],
    ['two tokens', ['Authorization: Bearer KEY KEY']],
    ['a list', ['Authorization: Bearer KEY, Bearer KEY']],
    ['a list of tokens', ['Authorization: Bearer KEY,KEY']],
    ['no token', ['Authorization: Bearer']],
    ['white space for a token', ['Authorization: Bearer   ']],
    ['a short token', ['Authorization: Bearer abcdefg']],
    ['a token of 513 characters', [`Authorization: Bearer ${'a'.repeat(513)}`]],
    ['a token of 10 KiB', [`Authorization: Bearer ${'a'.repeat(10_240)}`]],
    ['an = inside', ['Authorization: Bearer KEY=a']],
    ['a quoted token', ['Authorization: Bearer "KEY"']],
    ['a parameter', ['Authorization: Bearer token=KEY']],
    ['a tab before the token', ['Authorization: Bearer \tKEY']],
    ['a tab inside', ['Authorization: Bearer KEY\tx']],
  ])('%s: malformed, with the error attribute', async (_, fields) => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await expectRefused(withFields(...fields).replace('GET', method), 'malformed_key');
      expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([`${BARE}, error="invalid_request"`]);
    }
  });

  it('a byte that belongs into no token: malformed', async () => {
    for (let code = 0x21; code <= 0xff; code++) {
      const byte = String.fromCharCode(code);
      if (/[A-Za-z0-9\-._~+/]/.test(byte) || code === 0x7f) continue;
      for (const token of [`KEY${byte}x`, `${byte}KEY`])
        await expectRefused(withFields(`Authorization: Bearer ${token}`), 'malformed_key');
    }
  });

  it('an unknown token: invalid', async () => {
    for (const token of [
      'unknown-key',
      'KEYx',
      'xKEY',
      'KEY=',
      'a'.repeat(512),
      '../../etc/passwd',
      '-._~+/0=',
      '00000000',
      'null0000',
      `tg_${'0'.repeat(49)}`,
    ]) {
      const answer = await expectRefused(withFields(`Authorization: Bearer ${token}`), 'invalid_key');
      expect(fieldValues(answer ?? { fields: [] }, 'www-authenticate')).toEqual([`${BARE}, error="invalid_token"`]);
    }
  });

  it('the scheme in any case, and any number of spaces after it', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
      for (const spaces of [' ', '  ', '        ']) {
        for (const end of ['', ' ', '\t'])
          await expectPassed(withFields(`Authorization:${spaces}${scheme}${spaces}KEY${end}`));
      }
    }
  });
});
