/**
 * Reads the file of keys that sign identity assertions: PEM blocks (RFC 7468), with any text between them. A fault is
 * text that completes "name: …" in a problem, and never repeats the file's content.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';

/** `keys`: one PEM block each. */
export type SigningKeys =
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  | { readonly kind: 'invalid'; readonly fault: string };

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;
const HOW_TO = 'make one with: openssl genpkey -algorithm ed25519';

export function readSigningKeys(text: string): SigningKeys {
  const blocks = [...text.matchAll(BLOCK)].map(([block, label = '']) => ({ block, label }));
  if (blocks.length === 0 || blocks.length !== text.split('-----BEGIN ').length - 1) {
    return invalid(`must name a file with complete PEM blocks, beginning with a private key; ${HOW_TO}`);
  }
  const seen: string[] = [];
  for (const [index, { block, label }] of blocks.entries()) {
    const where = `PEM block ${index + 1} of the file`;
    if (index === 0 && label !== 'PRIVATE KEY') {
      return invalid(`${where} must be the private key that signs, in PKCS#8 (BEGIN PRIVATE KEY); ${HOW_TO}`);
    }
    const publicKey = publicPart(label, block);
    if (publicKey === undefined) {
      return invalid(`${where} must be an Ed25519 key, BEGIN PRIVATE KEY or BEGIN PUBLIC KEY; ${HOW_TO}`);
    }
    const earlier = seen.indexOf(publicKey);
    if (earlier >= 0) return invalid(`${where} is the key of block ${earlier + 1} again; keep one`);
    seen.push(publicKey);
  }
  return { kind: 'keys', keys: blocks.map(({ block }) => block) };
}

function invalid(fault: string): SigningKeys {
  return { kind: 'invalid', fault };
}

/** Returns the public key, as the same text for the same key; undefined if it is not an Ed25519 key. */
function publicPart(label: string, block: string): string | undefined {
  if (label !== 'PRIVATE KEY' && label !== 'PUBLIC KEY') return undefined;
  try {
    const key = createPublicKey(label === 'PRIVATE KEY' ? createPrivateKey(block) : block);
    return key.asymmetricKeyType === 'ed25519' ? key.export({ format: 'jwk' }).x : undefined;
  } catch {
    return undefined;
  }
}
