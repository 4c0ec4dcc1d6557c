/** Adds keys to the store: generated here, or imported. */
import { createApiKey, createKeyId, keyPrefix, sha256Hex } from '../keys/api-key.ts';
import type { KeyRecord } from '../store/store.ts';
import type { AdminParts } from './parts.ts';
import { Refusal } from './refusal.ts';

type Parts = Pick<AdminParts, 'records' | 'clock' | 'randomBytes'>;

interface KeyFacts {
  readonly customer: string;
  readonly name?: string | undefined;
  readonly expiresAt?: string | undefined;
}

/** Generates a key. Only its hash is stored: the key itself is shown once. Undefined if the customer does not exist. */
export async function issueKey(
  parts: Parts,
  facts: KeyFacts,
): Promise<{ readonly key: string; readonly record: KeyRecord } | undefined> {
  const key = createApiKey(parts.randomBytes);
  const record = newRecord(parts, facts, keyPrefix(key));
  const outcome = await parts.records.createKey(sha256Hex(key), record);
  if (outcome === 'no_customer') return undefined;
  if (outcome === 'exists') {
    throw new Error('a new random key or key id was there already: is the source of randomness broken?');
  }
  return { key, record };
}

/** A key that was created elsewhere: its value or only its digest. */
export type ExistingKey =
  | { readonly value: string; readonly sha256?: undefined }
  /** In lower case. */
  | { readonly value?: undefined; readonly sha256: string };

/** Imports a key. Undefined if the customer does not exist. @throws Refusal `conflict` */
export async function importKey(
  parts: Parts,
  { value, sha256 }: ExistingKey,
  facts: KeyFacts,
): Promise<KeyRecord | undefined> {
  const storedAs = sha256 ?? sha256Hex(value);
  const record = newRecord(parts, facts, value === undefined ? undefined : keyPrefix(value));
  const outcome = await parts.records.createKey(storedAs, record);
  if (outcome !== 'exists') return outcome === 'created' ? record : undefined;
  const existing = await parts.records.findKey(storedAs);
  throw existing?.customer === facts.customer
    ? new Refusal('conflict', 'This customer has this key already.', { key_owner: 'this_customer' })
    : new Refusal('conflict', 'Another customer has this key already.', { key_owner: 'another_customer' });
}

function newRecord({ clock, randomBytes }: Parts, facts: KeyFacts, prefix: string | undefined): KeyRecord {
  const { customer, name, expiresAt } = facts;
  return {
    id: createKeyId(randomBytes),
    customer,
    createdAt: new Date(clock.nowMs()).toISOString(),
    ...(prefix !== undefined && { prefix }),
    ...(name !== undefined && { name }),
    ...(expiresAt !== undefined && { expiresAt }),
  };
}
