/** Certificates as a test needs them: X.509 (RFC 5280) in DER, written by hand, signed with ECDSA on P-256. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface TestCertificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  readonly name: string;
}

export interface CertificateSettings {
  /** Common name, and the DNS name that it is for. Default: localhost. */
  readonly name?: string;
  /** Left out: signed by itself. */
  readonly issuer?: TestCertificate;
  readonly notBefore?: Date;
  /** Default: tomorrow. */
  readonly notAfter?: Date;
}

const DAY_MS = 24 * 3600 * 1000;
const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'));

/** A certificate for a DNS name and 127.0.0.1, with a new key; it may sign others. */
export function createCertificate(settings: CertificateSettings = {}): TestCertificate {
  const { name = 'localhost', issuer } = settings;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const notBefore = settings.notBefore ?? new Date(Date.now() - DAY_MS);
  const notAfter = settings.notAfter ?? new Date(Date.now() + DAY_MS);
  const content = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(issuer?.name ?? name),
    sequence(time(notBefore), time(notAfter)),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(basicConstraints(), subjectAlternativeName(name))),
  );
  const signer: KeyObject = issuer ? createPrivateKey(issuer.key) : privateKey;
  const signature = tagged(0x03, Buffer.from([0]), sign('sha256', content, signer));
  const der = sequence(content, ECDSA_WITH_SHA256, signature);
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return { name, key, cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n` };
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function oid(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tagged(0x31, sequence(oid('550403'), tagged(0x0c, Buffer.from(commonName)))));
}

/** GeneralizedTime. */
function time(at: Date): Buffer {
  return tagged(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`));
}

function basicConstraints(): Buffer {
  const value = sequence(tagged(0x01, Buffer.from([0xff])));
  return sequence(oid('551d13'), tagged(0x01, Buffer.from([0xff])), tagged(0x04, value));
}

function subjectAlternativeName(name: string): Buffer {
  const names = sequence(tagged(0x82, Buffer.from(name)), tagged(0x87, Buffer.from([127, 0, 0, 1])));
  return sequence(oid('551d11'), tagged(0x04, names));
}
