/**
 * Checks a certificate and its key, as PEM text, before they are used. A fault is text that completes "name: …" in a
 * problem report, and never repeats file contents.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type TlsKeys, tlsOptions } from './tls-options.ts';

export type Certificate =
  | { readonly kind: 'usable'; readonly keys: TlsKeys; readonly expiresAtMs: number }
  | { readonly kind: 'invalid'; readonly at: 'cert' | 'key'; readonly fault: string };

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Checks whether a certificate and its key can be used for TLS. `expiresAtMs`: the earliest expiry in the chain. An
 * expired certificate is usable: clients refuse it, not the gateway.
 */
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

/** Returns each certificate of a PEM text; undefined if there is none, or if one cannot be parsed. */
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
