/** What `store.url` means, and what else is said of how the store lets the gateway in. */
import { expect, it } from 'vitest';
import { parseStoreUrl } from '../../src/formats/store-address.ts';
import { createCertificate } from '../support/certificates.ts';
import { load, problemsOf, withFolder } from './support.ts';

const CA = createCertificate({ name: 'authority.test' });
const CLIENT = createCertificate({ name: 'gateway.test', issuer: CA });

it.each([
  ['redis://host', { kind: 'redis', host: 'host', port: 6379, database: 0, tls: false }],
  ['REDIS://127.0.0.1:1/15', { kind: 'redis', host: '127.0.0.1', port: 1, database: 15, tls: false }],
  ['redis://[::1]:6380/', { kind: 'redis', host: '::1', port: 6380, database: 0, tls: false }],
  [
    'rediss://gate%40way:p%3A:w@redis.example:6380',
    {
      kind: 'redis',
      host: 'redis.example',
      port: 6380,
      database: 0,
      tls: true,
      username: 'gate@way',
      password: 'p::w',
    },
  ],
  ['redis://:pw@host', { kind: 'redis', host: 'host', port: 6379, database: 0, tls: false, password: 'pw' }],
  [
    'redis+sentinel://:pw@h1,[::1],h2:5/my.master-1/3',
    {
      kind: 'sentinel',
      sentinels: [
        { host: 'h1', port: 26379 },
        { host: '::1', port: 26379 },
        { host: 'h2', port: 5 },
      ],
      master: 'my.master-1',
      database: 3,
      tls: false,
      password: 'pw',
    },
  ],
  [
    'rediss+cluster://h1,h2:7000/',
    {
      kind: 'cluster',
      seeds: [
        { host: 'h1', port: 6379 },
        { host: 'h2', port: 7000 },
      ],
      tls: true,
    },
  ],
  ['unix:/run/redis.sock', { kind: 'unix', path: '/run/redis.sock', tls: false }],
  [
    'unix://gateway:p%40ss@/run/redis/redis.sock',
    { kind: 'unix', path: '/run/redis/redis.sock', tls: false, username: 'gateway', password: 'p@ss' },
  ],
  ['sqlite:a/b.sqlite', { kind: 'sqlite', file: 'a/b.sqlite' }],
])('%s is understood', (url, address) => {
  expect(parseStoreUrl(url)).toEqual(address);
});

const yamlOf = (url: string, ...rest: string[]) =>
  ['upstream: { urls: ["http://b"] }', 'store:', `  url: ${url}`, ...rest.map((line) => `  ${line}`)].join('\n');

it.each([
  [yamlOf('redis://h', 'tls: { ca_file: x }'), /^gateway\.yaml:4: store\.tls: is used only with rediss:\/\//],
  [yamlOf('sqlite:a', 'tls: {}'), /^gateway\.yaml:4: store\.tls: is used only with rediss:\/\//],
  [
    yamlOf('redis://h', 'sentinel: { password: x }'),
    /^gateway\.yaml:4: store\.sentinel: is used only with redis\+sentinel/,
  ],
])('what the address has no use for is a problem: %j', async (yaml, problem) => {
  const found = (await problemsOf(yaml)).filter((line) => !line.includes('cannot be read'));
  expect(found).toEqual([expect.stringMatching(problem)]);
});

it('certificates are read from files, and checked', async () => {
  const files = { ca: CA.cert, cert: CLIENT.cert, key: CLIENT.key, other: CA.key, none: 'no certificate' };
  await withFolder(files, async (folder) => {
    const tls = (content: string) => yamlOf('rediss://h', `tls: ${content.replaceAll('@', `${folder}/`)}`);
    const { store } = await load(tls('{ ca_file: "@ca", cert_file: "@cert", key_file: "@key" }'));
    expect(store.tls).toEqual({ ca: CA.cert.trimEnd(), cert: CLIENT.cert.trimEnd(), key: CLIENT.key.trimEnd() });
    for (const [content, problem] of [
      ['{ ca_file: "@none" }', 'ca_file: must name a file with certificates in PEM (BEGIN CERTIFICATE)'],
      ['{ cert_file: "@cert" }', 'cert_file: is given without key_file; a client certificate needs both'],
      ['{ key_file: "@key" }', 'key_file: is given without cert_file; a client certificate needs both'],
      [
        '{ cert_file: "@none", key_file: "@key" }',
        'cert_file: must name a file with a certificate in PEM (BEGIN CERTIFICATE)',
      ],
      ['{ cert_file: "@cert", key_file: "@other" }', 'key_file: is not the key of the first certificate in cert_file'],
    ] as const) {
      expect(await problemsOf(tls(content))).toEqual([`gateway.yaml:4: store.tls.${problem}`]);
    }
  });
});

it('the password of the sentinels can stand in a file, and changes no hash', async () => {
  await withFolder({ password: 'of-sentinel\n' }, async (folder) => {
    const yaml = (sentinel: string) => yamlOf('redis+sentinel://h/m', `sentinel: ${sentinel}`);
    const { store } = await load(yaml(`{ username: gateway, password_file: "${folder}/password" }`));
    expect(store.sentinel).toEqual({ username: 'gateway', password: 'of-sentinel' });
    const [one, other] = [await load(yaml('{ password: a }')), await load(yaml('{ password: b }'))];
    expect(one.hash).toBe(other.hash);
    expect(JSON.stringify(one.disclosed)).toContain('"password":"(secret)"');
  });
});
