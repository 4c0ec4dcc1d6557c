/** Adds keys to the store: generated here, or imported. */
import { createApiKey, createKeyId, keyPrefix, sha256Hex } from '../../formats/api-key.ts';
import type { KeyRestrictions } from '../../formats/key-restrictions.ts';
import type { KeyRecord } from '../../store/record-fields.ts';
import { isoTime } from '../frame/document-of.ts';
import { Refusal } from '../frame/refusal.ts';
import type { AdminDependencies } from './dependencies.ts';
import { definedMembers } from './documents.ts';

type Dependencies = Pick<AdminDependencies, 'records' | 'clock' | 'randomBytes'>;

type KeyFacts = Pick<KeyRecord, 'customer'> & {
  readonly [Name in 'name' | 'expiresAt' | 'root' | keyof KeyRestrictions]?: KeyRecord[Name] | undefined;
} & { readonly requestsPerHour?: number | undefined };

/** Its limit is readable. */
type NewKey = KeyRecord & { readonly requestsPerHour?: number };

/** Generates a key. Only its hash is stored: the key itself is shown once. Undefined if the customer does not exist. */
export async function issueKey(
  dependencies: Dependencies,
  facts: KeyFacts,
): Promise<{ readonly key: string; readonly record: NewKey } | undefined> {
  const key = createApiKey(dependencies.randomBytes);
  const record = newRecord(dependencies, facts, keyPrefix(key));
  const outcome = await dependencies.records.createKey(sha256Hex(key), record);
  if (outcome === 'no_customer') return undefined;
  if (outcome === 'exists') {
    throw new Error('a new random key or key id exists already: is the source of randomness broken?');
  }
  return { key, record };
}

/**
 * Imports a key that was created elsewhere, given by its value or by its digest in lower case. Undefined if the
 * customer does not exist. @throws Refusal `conflict`
 */
export async function importKey(
  dependencies: Dependencies,
  {
    value = '',
    sha256 = sha256Hex(value),
  }: { readonly value?: string | undefined; readonly sha256?: string | undefined },
  facts: KeyFacts,
): Promise<{ readonly record: NewKey } | undefined> {
  const record = newRecord(dependencies, facts, keyPrefix(value));
  const outcome = await dependencies.records.createKey(sha256, record);
  if (outcome !== 'exists') return outcome === 'created' ? { record } : undefined;
  const existing = await dependencies.records.findKey(sha256);
  throw existing?.customer === facts.customer
    ? new Refusal('conflict', 'This customer has this key already.', { key_owner: 'this_customer' })
    : new Refusal('conflict', 'Another customer has this key already.', { key_owner: 'another_customer' });
}

function newRecord({ clock, randomBytes }: Dependencies, facts: KeyFacts, prefix: string | undefined): NewKey {
  const { customer, ...others } = facts;
  const createdAt = isoTime(clock.nowMs());
  return { id: createKeyId(randomBytes), customer, createdAt, ...definedMembers({ prefix, ...others }) };
}
