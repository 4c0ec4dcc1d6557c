import { generateKeyPairSync } from 'node:crypto';

export interface PemPair {
  /** PKCS#8. */
  readonly privatePem: string;
  /** SPKI. */
  readonly publicPem: string;
}

export function createPemPair(): PemPair {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    privatePem: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
    publicPem: String(publicKey.export({ format: 'pem', type: 'spki' })),
  };
}
