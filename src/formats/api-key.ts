/**
 * API keys as text. A generated key is `tg_`, 32 random bytes in base62 (43 characters, zero-padded), and the CRC-32 of
 * all before it in base62 (6 characters). Secret scanners can recognise this form, and a mistyped key is refused
 * without a store lookup. Imported keys, which were made elsewhere, may be any token68.
 */
import { hash, randomBytes as secureRandomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const GENERATED_PREFIX = 'tg_';
const RANDOM_BYTES = 32;
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const CHECKED_LENGTH = GENERATED_PREFIX.length + RANDOM_LENGTH;
const GENERATED_LENGTH = CHECKED_LENGTH + CHECKSUM_LENGTH;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** token68 of RFC 9110 §11.2. The length is checked separately, because it includes the trailing `=`. */
const TOKEN68 = /^[A-Za-z0-9\-._~+/]+=*$/;
const MIN_KEY_LENGTH = 8;
const MAX_KEY_LENGTH = 512;

/** Maximum length of a key's beginning that may be shown, or sent to search for the key. */
export const MAX_KEY_BEGINNING_LENGTH = 12;
const MIN_LENGTH_SHOWN = 32;
/** Characters of a key that are never shown. 24 characters of base62 are 142 bits, too many to guess. */
const HIDDEN_LENGTH = 24;

/** Creates a key with 256 bits of `randomBytes`, which must be cryptographically secure. */
export function createApiKey(randomBytes: (size: number) => Buffer = secureRandomBytes): string {
  const checked = GENERATED_PREFIX + toBase62(bigIntOf(randomBytes(RANDOM_BYTES)), RANDOM_LENGTH);
  return checked + toBase62(BigInt(crc32(checked)), CHECKSUM_LENGTH);
}

/** Returns true only for a key that has the form of a generated one but a wrong checksum. Other forms never fail. */
export function failsChecksum(key: string): boolean {
  if (key.length !== GENERATED_LENGTH || !key.startsWith(GENERATED_PREFIX)) return false;
  // Digit by digit: it runs for each request, and a text of big integers would cost more than the hash of the key.
  let rest = crc32(key.slice(0, CHECKED_LENGTH));
  for (let at = GENERATED_LENGTH - 1; at >= CHECKED_LENGTH; at--) {
    if (key[at] !== BASE62[rest % 62]) return true;
    rest = Math.floor(rest / 62);
  }
  return false;
}

/** Matches every position at which a generated key may begin. Matches may overlap, so only the prefix is consumed. */
const POSSIBLY_GENERATED = new RegExp(`${GENERATED_PREFIX}(?=([0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}))`, 'g');

/** Returns whether a text contains a generated key with a correct checksum. */
export function containsGeneratedKey(text: string): boolean {
  for (const [, rest] of text.matchAll(POSSIBLY_GENERATED)) {
    if (!failsChecksum(`${GENERATED_PREFIX}${rest}`)) return true;
  }
  return false;
}

/** Returns whether a token has the form of an API key: token68 of 8 to 512 characters. */
export function isPossibleKey(token: string): boolean {
  return token.length >= MIN_KEY_LENGTH && token.length <= MAX_KEY_LENGTH && TOKEN68.test(token);
}

/** Returns the name under which a key is stored: lower-case hex SHA-256 of the whole key. */
export function sha256Hex(key: string): string {
  return hash('sha256', key, 'hex');
}

/**
 * Returns the beginning of a key, for people to recognise it by: at most 12 characters, so that at least 24 stay
 * hidden. Undefined for an imported key of fewer than 32 characters, because too few could be shown to recognise it.
 */
export function keyPrefix(key: string): string | undefined {
  return key.length < MIN_LENGTH_SHOWN
    ? undefined
    : key.slice(0, Math.min(MAX_KEY_BEGINNING_LENGTH, key.length - HIDDEN_LENGTH));
}

/** Returns whether a text may be the beginning of a key and is short enough to be shown. */
export function isKeyBeginning(text: string): boolean {
  return text.length <= MAX_KEY_BEGINNING_LENGTH && /^[A-Za-z0-9\-._~+/]+$/.test(text);
}

/** Creates the id of a key record: `key_` and 19 base62 characters of 112 random bits. Not a secret. */
export function createKeyId(randomBytes: (size: number) => Buffer = secureRandomBytes): string {
  return `key_${toBase62(bigIntOf(randomBytes(14)), 19)}`;
}

function bigIntOf(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`);
}

function toBase62(value: bigint, length: number): string {
  let digits = '';
  for (let rest = value; rest > 0n; rest /= 62n) digits = BASE62.charAt(Number(rest % 62n)) + digits;
  return digits.padStart(length, '0');
}
