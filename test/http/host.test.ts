import { describe, it } from 'vitest';
import { head, useHttpSystem } from './support/system.ts';

const { expectPassed, expectRefused } = useHttpSystem();
const AUTHORIZATION = 'Authorization: Bearer KEY';

function withHosts(...hosts: string[]): string {
  return head('GET /v1/conversations HTTP/1.1', ...hosts, AUTHORIZATION);
}

/** RFC 9112 §3.2, RFC 9110 §7.2. */
describe('a request names exactly one host', () => {
  it.each([
    ['none', []],
    ['two that differ', ['Host: a.example', 'Host: b.example']],
    ['two that are equal', ['Host: a.example', 'Host: a.example']],
    ['two in different case', ['Host: a.example', 'hOST: a.example']],
    ['an empty second one', ['Host: a.example', 'Host:']],
  ])('%s: refused', async (_, hosts) => {
    await expectRefused(withHosts(...hosts), 'bad_request');
    await expectRefused(withHosts(...hosts).replace('GET /v1', 'HEAD http://c.example/v1'), 'bad_request');
  });

  it.each([
    ['empty', ['', ' ', '\t']],
    ['userinfo', ['user@a.example', 'user:password@a.example', '@a.example', 'a.example@']],
    ['a path, query or fragment', ['a.example/', 'a.example/b', 'a.example?b', 'a.example#b', '/', 'a\\b', 'http://a']],
    ['a list', ['a.example,b.example', 'a.example, b.example', ',a.example', 'a.example,', 'a.example b.example']],
    ['a port that is none', ['a:b', 'a:80:80', 'a:-1', 'a:+80', 'a:65536', 'a:99999', 'a:100000', ':80', ':', 'a: 80']],
    [
      'an address that is none',
      [
        '[::1',
        '::1]',
        '[]',
        '[::1]x',
        '[::1]:',
        '[::1]:x',
        '[g::1]',
        '[1.2.3.4]',
        '[::1%25eth0]',
        '[[::1]]',
        '[:::::]',
      ],
    ],
    ['an escape', ['a%2eexample', '%61.example', 'a%00b', '%', 'a%zz']],
    [
      'characters of no host',
      [
        'a"b',
        "a'b",
        'a<b>',
        'a{b}',
        'a|b',
        'a^b',
        'a`b',
        'a;b',
        'a=b',
        'a&b',
        'a$b',
        'a!b',
        'a*b',
        '(a)',
        '*',
        'a+b',
        'a\xe9b',
        'a\x01b',
        'a\tb',
        'a\0b',
      ],
    ],
  ])('%s: refused', async (_, hosts) => {
    for (const host of hosts) {
      if (host === '[::1]:') continue; // an empty port is one
      await expectRefused(withHosts(`Host: ${host}`), 'bad_request');
    }
  });

  it('in absolute form the target names it, by the same rules', async () => {
    for (const host of [
      '',
      'a@b',
      'a,b',
      ':80',
      'a:x',
      'a:65536',
      'a%2eb',
      'a;b',
      '[::1',
      '[1.2.3.4]',
      'a b',
      'a\\b',
    ]) {
      await expectRefused(
        head(`GET http://${host}/v1/conversations HTTP/1.1`, 'Host: a.example', AUTHORIZATION),
        'bad_request',
      );
    }
    const { seen } = await expectPassed(
      head('GET http://b.example:80/v1/conversations HTTP/1.1', 'Host: a.example', AUTHORIZATION),
    );
    if (!seen.fields.some(([name, value]) => name === 'X-Forwarded-Host' && value === 'b.example:80')) {
      throw new Error(`not the target's: ${JSON.stringify(seen.fields)}`);
    }
  });

  it.each([
    'a',
    'a.example',
    'a.example.',
    'A.EXAMPLE',
    'a_b',
    'a-b~c',
    'a:80',
    'a:',
    'a:0',
    'a:65535',
    '127.0.0.1:8080',
    '[::1]',
    '[::1]:',
    '[2001:db8::1]:443',
    '[::ffff:1.2.3.4]',
    ` a `,
    '\ta\t',
  ])('%j: accepted', async (host) => {
    await expectPassed(withHosts(`Host: ${host}`));
    await expectPassed(withHosts(`hOsT:${host}`));
  });

  it('HTTP/1.0 may go without, but not with a wrong one', async () => {
    await expectPassed(head('GET /v1/conversations HTTP/1.0', AUTHORIZATION));
    await expectRefused(head('GET /v1/conversations HTTP/1.0', 'Host: a, b', AUTHORIZATION), 'bad_request');
    await expectRefused(head('GET /v1/conversations HTTP/1.0', 'Host: a', 'Host: a', AUTHORIZATION), 'bad_request');
    await expectRefused(head('GET /v1/conversations HTTP/1.0', 'Host:', AUTHORIZATION), 'bad_request');
  });
});
