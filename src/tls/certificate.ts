/**
 * A certificate and its key, as text of PEM files, checked before anybody depends on them. A fault is returned as the
 * words that complete "name: …" in a problem, and never repeats what a file has.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type TlsKeys, tlsOptions } from './tls-options.ts';

export type Certificate =
  | { readonly kind: 'usable'; readonly keys: TlsKeys; readonly expiresAtMs: number }
  | { readonly kind: 'invalid'; readonly at: 'cert' | 'key'; readonly fault: string };

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** `expiresAtMs`: of the first of the chain to end. An expired one is usable: callers, not the gateway, refuse it. */
export function checkCertificate(cert: string, key: string): Certificate {
  const chain = readCertificates(cert);
  const [own] = chain ?? [];
  if (chain === undefined || own === undefined) {
    return { kind: 'invalid', at: 'cert', fault: 'must name a file with a certificate in PEM (BEGIN CERTIFICATE)' };
  }
  const privateKey = readPrivateKey(key);
  if (privateKey === undefined) {
    const fault = 'must name a file with a private key in PEM (BEGIN PRIVATE KEY) without a passphrase';
    return { kind: 'invalid', at: 'key', fault };
  }
  if (!own.checkPrivateKey(privateKey)) {
    return { kind: 'invalid', at: 'key', fault: 'is not the key of the first certificate in cert_file' };
  }
  const keys = { cert, key };
  try {
    createSecureContext(tlsOptions(keys));
  } catch {
    return { kind: 'invalid', at: 'cert', fault: 'cannot be used for TLS: its key or signature is too weak' };
  }
  return { kind: 'usable', keys, expiresAtMs: Math.min(...chain.map(({ validToDate }) => validToDate.getTime())) };
}

/** Each certificate of a PEM text; undefined when one of them is none, or there is none. */
export function readCertificates(text: string): X509Certificate[] | undefined {
  const blocks = text.match(CERTIFICATE_BLOCK) ?? [];
  if (blocks.length === 0 || blocks.length !== text.split('-----BEGIN CERTIFICATE-----').length - 1) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

function readPrivateKey(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}
