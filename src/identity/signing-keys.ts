import { createPrivateKey, createPublicKey } from 'node:crypto';
import { type CryptoKey, calculateJwkThumbprint, importPKCS8, type JSONWebKeySet, type JWK } from 'jose';

export const ALGORITHM = 'EdDSA';

export interface SigningKeys {
  /** Signs; never leaves this process. */
  readonly privateKey: CryptoKey;
  /** Names the public half of `privateKey`: its JWK thumbprint (RFC 7638). */
  readonly kid: string;
  /** Every public key, that of `privateKey` first. */
  readonly published: JSONWebKeySet;
}

/** `pems`: Ed25519 keys, the first a PKCS#8 private one, as the configuration has checked. */
export async function importSigningKeys(pems: readonly string[]): Promise<SigningKeys> {
  const keys = await Promise.all(pems.map(publicJwk));
  const [[pem = ''], [first]] = [pems, keys];
  return { privateKey: await importPKCS8(pem, ALGORITHM), kid: first?.kid ?? '', published: { keys } };
}

async function publicJwk(pem: string): Promise<JWK> {
  const isPrivate = pem.startsWith('-----BEGIN PRIVATE KEY-----');
  const {
    kty = '',
    crv = '',
    x = '',
  } = createPublicKey(isPrivate ? createPrivateKey(pem) : pem).export({ format: 'jwk' });
  const jwk = { kty, crv, x };
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' };
}
