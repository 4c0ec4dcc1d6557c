import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkCertificate } from '../../src/http/tls/certificate.ts';
import { createCertificate } from '../support/certificates.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const ca = createCertificate({ name: 'a test authority' });
const own = createCertificate({ issuer: ca });
const other = createCertificate({ issuer: ca });
const FILES = { crt: own.cert, chain: own.cert + ca.cert, key: own.key, other: other.key, ca: ca.cert, empty: '' };

const listenTls = (folder: string, cert: string, key: string) =>
  `${MINIMAL}listen: { tls: { cert_file: ${folder}/${cert}, key_file: ${folder}/${key} } }`;
const upstreamTls = (tls: string) =>
  `store: { url: "sqlite:a" }\nupstream:\n  urls: ["https://backend"]\n  tls: ${tls}\n`;

describe('listen.tls', () => {
  it('is left out by default, and names files that are relative to the configuration', async () => {
    expect((await load(MINIMAL)).listen).not.toHaveProperty('tls');
    await withFolder(FILES, async (folder) => {
      const { tls } = (await load(listenTls(folder, 'chain', 'key'))).listen;
      expect(tls).toEqual({ certFile: join(folder, 'chain'), keyFile: join(folder, 'key') });
    });
  });

  it.each([
    ['{ cert_file: a }', ['3: listen.tls.key_file: is required', '3: listen.tls.cert_file: the file cannot be read']],
    ['{ key_file: a }', ['3: listen.tls.cert_file: is required', '3: listen.tls.key_file: the file cannot be read']],
  ])('%s says what is missing', async (tls, wanted) => {
    const problems = await problemsOf(`${MINIMAL}listen: { tls: ${tls} }`);
    for (const each of wanted) expect(problems.join('\n')).toContain(`gateway.yaml:${each}`);
  });

  it.each([
    ['nothing', 'key', 'cert_file: the file cannot be read: there is no such file'],
    ['crt', 'nothing', 'key_file: the file cannot be read: there is no such file'],
    ['empty', 'key', 'cert_file: must name a file with a certificate in PEM (BEGIN CERTIFICATE)'],
    ['key', 'key', 'cert_file: must name a file with a certificate in PEM (BEGIN CERTIFICATE)'],
    ['crt', 'crt', 'key_file: must name a file with a private key in PEM (BEGIN PRIVATE KEY) without a passphrase'],
    ['crt', 'other', 'key_file: is not the key of the first certificate in cert_file'],
  ])('with cert_file: %s and key_file: %s is refused', async (cert, key, fault) => {
    await withFolder(FILES, async (folder) => {
      const problems = await problemsOf(listenTls(folder, cert, key));
      expect(problems).toHaveLength(1);
      expect(problems[0]).toContain(`gateway.yaml:3: listen.tls.${fault}`);
    });
  });
});

describe('upstream.tls', () => {
  it('has what its files have', async () => {
    await withFolder(FILES, async (folder) => {
      const files = `{ ca_file: ${folder}/ca, cert_file: ${folder}/crt, key_file: ${folder}/key }`;
      const { tls } = (await load(upstreamTls(files))).upstream ?? {};
      expect(tls).toEqual({ ca: ca.cert.trimEnd(), cert: own.cert.trimEnd(), key: own.key.trimEnd() });
    });
  });

  it.each([
    ['{ ca_file: $/key }', 'ca_file: must name a file with certificates in PEM'],
    ['{ cert_file: $/crt }', 'cert_file: is given without key_file'],
    ['{ key_file: $/key }', 'key_file: is given without cert_file'],
    ['{ cert_file: $/crt, key_file: $/other }', 'key_file: is not the key of the first certificate in cert_file'],
    ['{ ca_file: $/nothing }', 'ca_file: the file cannot be read: there is no such file'],
  ])('%s is refused', async (tls, fault) => {
    await withFolder(FILES, async (folder) => {
      const problems = await problemsOf(upstreamTls(tls.replaceAll('$', folder)));
      expect(problems).toHaveLength(1);
      expect(problems[0]).toContain(`gateway.yaml:4: upstream.tls.${fault}`);
    });
  });

  it('without a backend that speaks TLS is refused', async () => {
    await withFolder(FILES, async (folder) => {
      const yaml = upstreamTls(`{ ca_file: ${folder}/ca }`).replace('https:', 'http:');
      expect(await problemsOf(yaml)).toEqual([
        expect.stringContaining('4: upstream.tls: is used only with an https:// URL'),
      ]);
    });
  });
});

describe('a certificate', () => {
  it('ends when the first of its chain does', () => {
    const soon = new Date(Math.floor(Date.now() / 1000) * 1000 + 60_000);
    const shortLived = createCertificate({ name: 'short-lived', issuer: ca, notAfter: soon });
    const leaf = createCertificate({ issuer: shortLived });
    const checked = checkCertificate(leaf.cert + shortLived.cert + ca.cert, leaf.key);
    expect(checked).toMatchObject({ kind: 'usable', expiresAtMs: soon.getTime() });
  });

  it('that is cut off anywhere is not used', () => {
    const whole = own.cert.trimEnd();
    for (let end = 0; end < whole.length; end++) {
      expect(checkCertificate(whole.slice(0, end), own.key), `${end} bytes`).toMatchObject({ at: 'cert' });
      expect(checkCertificate(`${whole}\n${ca.cert.slice(0, Math.min(end, 100) + 27)}`, own.key).kind).toBe('invalid');
    }
    for (let end = 0; end < own.key.trimEnd().length; end++) {
      expect(checkCertificate(own.cert, own.key.slice(0, end)), `${end} bytes`).toMatchObject({ at: 'key' });
    }
  });
});
