import { type CryptoKey, calculateJwkThumbprint, importPKCS8, type JSONWebKeySet, type JWK } from 'jose';
import { ed25519PublicKey } from '../../formats/signing-key-file.ts';

export const ALGORITHM = 'EdDSA';

export interface SigningKeys {
  /** Signs; never leaves this process. */
  readonly privateKey: CryptoKey;
  /** Identifies the public key of `privateKey`: its JWK thumbprint (RFC 7638). */
  readonly kid: string;
  /** All public keys, that of `privateKey` first. */
  readonly published: JSONWebKeySet;
}

/** Imports the keys. `pems`: Ed25519 keys of a valid signing key file; the first is a PKCS#8 private key. */
export async function importSigningKeys(pems: readonly string[]): Promise<SigningKeys> {
  const keys = await Promise.all(pems.map(publicJwk));
  const [pem = ''] = pems;
  const [first] = keys;
  return { privateKey: await importPKCS8(pem, ALGORITHM), kid: first?.kid ?? '', published: { keys } };
}

async function publicJwk(pem: string): Promise<JWK> {
  const x = ed25519PublicKey(pem);
  if (x === undefined) throw new Error('a signing key is not an Ed25519 key');
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' };
}
