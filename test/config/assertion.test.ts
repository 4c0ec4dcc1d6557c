import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createPemPair } from '../upstream/identity/support.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const HOW_TO = 'make one with: openssl genpkey -algorithm ed25519';
const WHERE = 'gateway.yaml:4: identity.assertion.signing_key_file';
const YAML = `${MINIMAL}identity:\n  assertion: { signing_key_file: keys.pem }\n`;

const ONE = createPemPair();
const TWO = createPemPair();
const EC = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const EC_PKCS8 = String(EC.export({ format: 'pem', type: 'pkcs8' }));
const EC_SEC1 = String(EC.export({ format: 'pem', type: 'sec1' }));
const ENCRYPTED = String(
  generateKeyPairSync('ed25519').privateKey.export({
    format: 'pem',
    type: 'pkcs8',
    cipher: 'aes-256-cbc',
    passphrase: 'MARKED',
  }),
);

/** What is loaded with these keys in the file that the configuration names. */
async function loadWith(pem: string, yaml = YAML): Promise<Config> {
  let config: Config | undefined;
  await withFolder({ 'gateway.yaml': yaml, 'keys.pem': pem }, async (folder) => {
    config = await loadConfig(join(folder, 'gateway.yaml'), {});
  });
  return config as Config;
}

async function problemsWith(pem: string): Promise<string[]> {
  const problems = await loadWith(pem).catch((error) => error.problems as string[]);
  if (!Array.isArray(problems)) throw new Error('the configuration was accepted');
  return problems.map((problem) => problem.replace(/^.*\/(?=gateway\.yaml:)/, ''));
}

describe('the keys that sign assertions', () => {
  test('are read from a file beside the configuration; the rest has defaults', async () => {
    const { identity } = await loadWith(ONE.privatePem);
    const signingKeys = [ONE.privatePem.trimEnd()];
    expect(identity).toEqual({ headers: true, assertion: { issuer: 'tollgate', ttlSeconds: 60, signingKeys } });
  });

  // The text "null", which any other gateway with a socket had too, was the audience.
  test('an audience is required if the backend is a unix socket', async () => {
    const yaml = YAML.replace('http://backend:3000', 'unix:/run/backend.sock');
    expect(await problemsOf(yaml)).toContainEqual(
      'gateway.yaml:2: upstream.audience: is required, here or as identity.assertion.audience: the first of urls is a unix socket, which has no origin',
    );
    expect(await problemsOf(yaml.replace('{ signing', '{ audience: "https://backend", signing'))).not.toContainEqual(
      expect.stringContaining('audience'),
    );
    const ownAudience = yaml.replace('backend.sock"]', 'backend.sock"], audience: "https://backend"');
    expect(ownAudience).not.toBe(yaml);
    expect(await problemsOf(ownAudience)).not.toContainEqual(expect.stringContaining('audience'));
  });

  test.each([
    ['two private ones', ONE.privatePem + TWO.privatePem],
    ['a private and a public one', ONE.privatePem + TWO.publicPem],
    ['text between them', `the new one:\n${ONE.privatePem}\nthe old one:\n${TWO.publicPem}# end`],
    ['lines that end as on Windows', (ONE.privatePem + TWO.publicPem).replaceAll('\n', '\r\n')],
  ])('may be several: %s', async (_what, pem) => {
    const { identity } = await loadWith(pem);
    expect(identity.assertion?.signingKeys).toHaveLength(2);
    expect(identity.assertion?.signingKeys[0]).toMatch(/^-----BEGIN PRIVATE KEY-----/);
  });

  test.each([
    ['nothing', '', `must name a file with complete PEM blocks, beginning with a private key; ${HOW_TO}`],
    ['no PEM', 'MARKED', `must name a file with complete PEM blocks, beginning with a private key; ${HOW_TO}`],
    [
      'a block that is cut off',
      ONE.privatePem + TWO.privatePem.slice(0, 60),
      `must name a file with complete PEM blocks, beginning with a private key; ${HOW_TO}`,
    ],
    [
      'a public key first',
      ONE.publicPem + TWO.privatePem,
      `PEM block 1 of the file must be the private key that signs, in PKCS#8 (BEGIN PRIVATE KEY); ${HOW_TO}`,
    ],
    [
      'an encrypted key',
      ENCRYPTED,
      `PEM block 1 of the file must be the private key that signs, in PKCS#8 (BEGIN PRIVATE KEY); ${HOW_TO}`,
    ],
    [
      'a key of another form',
      EC_SEC1,
      `PEM block 1 of the file must be the private key that signs, in PKCS#8 (BEGIN PRIVATE KEY); ${HOW_TO}`,
    ],
    [
      'a key of another kind',
      EC_PKCS8,
      `PEM block 1 of the file must be an Ed25519 key, BEGIN PRIVATE KEY or BEGIN PUBLIC KEY; ${HOW_TO}`,
    ],
    [
      'bytes that are no key',
      '-----BEGIN PRIVATE KEY-----\nTUFSS0VE\n-----END PRIVATE KEY-----',
      `PEM block 1 of the file must be an Ed25519 key, BEGIN PRIVATE KEY or BEGIN PUBLIC KEY; ${HOW_TO}`,
    ],
    [
      'a further key of another kind',
      ONE.privatePem + EC_PKCS8,
      `PEM block 2 of the file must be an Ed25519 key, BEGIN PRIVATE KEY or BEGIN PUBLIC KEY; ${HOW_TO}`,
    ],
    [
      'the same key twice',
      ONE.privatePem + TWO.publicPem + ONE.publicPem,
      'PEM block 3 of the file is the key of block 1 again; keep one',
    ],
  ])('are refused when the file has %s, without a word of it', async (_what, pem, fault) => {
    expect(await problemsWith(pem)).toEqual([`${WHERE}: ${fault}`]);
  });

  test('are missed once', async () => {
    expect(await problemsOf(`${MINIMAL}identity: { assertion: {} }`)).toEqual([
      'gateway.yaml:3: identity.assertion.signing_key_file: is required and must be the name of a file',
    ]);
    expect(await problemsOf(`${MINIMAL}identity: { assertion: { signing_key_file: "" } }`)).toEqual([
      `gateway.yaml:3: identity.assertion.signing_key_file: must name a file with complete PEM blocks, beginning with a private key; ${HOW_TO}`,
    ]);
    expect(await problemsOf(`${MINIMAL}identity: { assertion: { signing_key_file: /none.pem } }`)).toEqual([
      "gateway.yaml:3: identity.assertion.signing_key_file: the file cannot be read: there is no such file; a relative name is relative to this file's folder",
    ]);
  });

  test('stand in a file only', async () => {
    const problems = await problemsOf(`${MINIMAL}identity: { assertion: { signing_key: MARKED } }`);
    expect(problems.join('\n')).toContain('identity.assertion.signing_key: unknown key');
    expect(problems.join('\n')).not.toContain('MARKED');
  });

  test('do not change the hash of the configuration, which is public', async () => {
    const [one, two] = [await loadWith(ONE.privatePem), await loadWith(TWO.privatePem)];
    expect(one.hash).toBe(two.hash);
    expect(one.hash).not.toBe((await load(MINIMAL)).hash);
  });
});

test.each([9, 3601, 60.5])('an assertion does not hold for %d seconds', async (seconds) => {
  const yaml = YAML.replace('keys.pem', `keys.pem, ttl_seconds: ${seconds}`);
  await expect(loadWith(ONE.privatePem, yaml)).rejects.toThrow(
    `identity.assertion.ttl_seconds: must be an integer of seconds from 10 to 3600, got ${seconds}`,
  );
});
