/**
 * Reads the file of keys that sign identity assertions: PEM blocks (RFC 7468), with any text between them. A fault is
 * text that completes "name: …" in a problem, and never repeats the file's content.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';

/** `keys`: one PEM block each. */
type SigningKeyFile =
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  | { readonly kind: 'invalid'; readonly fault: string };

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;
const HOW_TO = 'make one with: openssl genpkey -algorithm ed25519';

export function readSigningKeyFile(text: string): SigningKeyFile {
  const blocks = text.match(BLOCK) ?? [];
  if (blocks.length === 0 || blocks.length !== text.split('-----BEGIN ').length - 1) {
    return invalid(`must name a file with complete PEM blocks, beginning with a private key; ${HOW_TO}`);
  }
  const seen: string[] = [];
  for (const [index, block] of blocks.entries()) {
    const where = `PEM block ${index + 1} of the file`;
    if (index === 0 && !isPrivateKey(block)) {
      return invalid(`${where} must be the private key that signs, in PKCS#8 (BEGIN PRIVATE KEY); ${HOW_TO}`);
    }
    const publicKey = ed25519PublicKey(block);
    if (publicKey === undefined) {
      return invalid(`${where} must be an Ed25519 key, BEGIN PRIVATE KEY or BEGIN PUBLIC KEY; ${HOW_TO}`);
    }
    const earlier = seen.indexOf(publicKey);
    if (earlier >= 0) return invalid(`${where} is the key of block ${earlier + 1} again; keep one`);
    seen.push(publicKey);
  }
  return { kind: 'keys', keys: blocks };
}

function invalid(fault: string): SigningKeyFile {
  return { kind: 'invalid', fault };
}

function isPrivateKey(pem: string): boolean {
  return pem.startsWith('-----BEGIN PRIVATE KEY-----');
}

/** Returns the public key as in a JWK (`x`): the same text for the same key. Undefined if the PEM block is no Ed25519 key. */
export function ed25519PublicKey(pem: string): string | undefined {
  const isPrivate = isPrivateKey(pem);
  if (!isPrivate && !pem.startsWith('-----BEGIN PUBLIC KEY-----')) return undefined;
  try {
    const key = createPublicKey(isPrivate ? createPrivateKey(pem) : pem);
    return key.asymmetricKeyType === 'ed25519' ? key.export({ format: 'jwk' }).x : undefined;
  } catch {
    return undefined;
  }
}
