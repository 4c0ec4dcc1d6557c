/** Texts that may have a whole key: of one, only the hash may leave the browser. */
import { call } from './api.ts';

/** Of a text. */
const MAX_LENGTH = 1000;
/** What a key can be, in any text: after `Bearer`, in quotes, in a line of a configuration. */
const POSSIBLE_KEYS = /[\w.~+/-]{8,512}=*/g;
export const MAX_BEGINNING_LENGTH = 12;
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Forms of ids that keys rarely have: UUID, ULID and the ObjectId of MongoDB. */
const ID = new RegExp(`${UUID.source}|^[0-7][0-9A-HJKMNP-TV-Z]{25}$|^[0-9a-f]{24}$`, 'i');
/** Ids of keys and notices. */
const OWN_ID = /^(?:key_[0-9A-Za-z]{19}$|msg_)/;
/** As in generated keys, and in most of other systems. */
const RANDOM = /(?=[^\d]*\d)(?=.*[A-Za-z])[A-Za-z0-9+/~]{16,}/;

/** Returns the parts of a text that may be whole keys. */
export const possibleKeys = (text: string): readonly string[] => text.slice(0, MAX_LENGTH).match(POSSIBLE_KEYS) ?? [];

/** Whether it may be a whole key, also of another installation. Such a text is in no address. */
export function looksSecret(part: string): boolean {
  if (part.length <= MAX_BEGINNING_LENGTH || OWN_ID.test(part)) return false;
  return part.startsWith('tg_') || UUID.test(part) || RANDOM.test(part);
}

/** Returns the part that may not be sent although no key has its hash: it is in no form of an id. */
export const secretIn = (parts: readonly string[]) => parts.find((part) => looksSecret(part) && !ID.test(part));

/** Browsers hash on https and loopback addresses only. */
export const canHash = window.isSecureContext;

/** Resolves to the hash of the first of these that is a key; undefined if none is. */
export async function hashOfKeyIn(parts: readonly string[]): Promise<string | undefined> {
  if (!canHash) return undefined;
  for (const part of parts) {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(part));
    const sha256 = Array.from(new Uint8Array(digest), hexByte).join('');
    const { items } = await call('GET /admin/v1/keys', { query: { sha256 } });
    if (items.length > 0) return sha256;
  }
  return undefined;
}

const hexByte = (byte: number) => byte.toString(16).padStart(2, '0');

/** Whether a text may be sent as it is. Rejects if that cannot be known. */
export async function maySend(text: string): Promise<boolean> {
  const parts = possibleKeys(text);
  return secretIn(parts) === undefined && (await hashOfKeyIn(parts)) === undefined;
}
