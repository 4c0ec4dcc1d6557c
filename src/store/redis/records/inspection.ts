/**
 * Reads every key and customer record as stored, and compares the keys with their indexes. Each step is short. Between
 * steps the inspection keeps only the ids of keys without an index entry, up to {@link MAX_OWNERS}.
 */
import { hash } from 'node:crypto';
import { isCustomerId, isKeyId } from '../../../formats/ids.ts';
import type { StoreOp } from '../../observer.ts';
import {
  customerFaults,
  type InspectedRecord,
  keyFaults,
  type RecordFault,
  recordFault,
  wrongType,
} from '../../record-faults.ts';
import { CUSTOMER_FIELDS, customerRecordFrom, KEY_FIELDS, type KeyRecord, keyRecordFrom } from '../../record-fields.ts';
import { sendEach } from '../connection/channel.ts';
import { isSha256, type RedisKeyNames } from '../protocol/key-names.ts';
import type { KeyIndex } from './key-index.ts';
import { scanHashes } from './name-scan.ts';

const OP = 'inspect';
/** Bounds the memory for key ids to some ten megabytes. */
const MAX_OWNERS = 100_000;

/** A key record as stored, whether or not it is in the indexes. */
export interface StoredKey extends InspectedRecord {
  readonly sha256: string;
}

export async function* inspectRecords(index: KeyIndex): AsyncGenerator<readonly InspectedRecord[]> {
  const { connection, names } = index;
  /** Hashes of the keys without an index entry by id, by key id. */
  const owners = new Map<string, string>();
  for await (const keys of everyKey(index, OP)) {
    const indexable = keys.flatMap(({ sha256, key }) =>
      key && isKeyId(key.id) && isCustomerId(key.customer) ? [{ sha256, ...key }] : [],
    );
    const indexFaults = await indexFaultsOf(index, owners, indexable);
    const customers = [...new Set(indexable.map(({ customer }) => customer))];
    // A record of another type counts, too: it has a fault of its own.
    const counts = await sendEach(connection, OP, customers, (id) => ['exists', names.customerRecord(id)]);
    const existing = new Map(customers.map((id, i) => [id, counts[i] === 1]));
    yield keys.map(
      (each): InspectedRecord => ({
        ...each,
        faults: [...each.faults, ...(indexFaults.get(each.sha256) ?? [])],
        customerExists: existing.get(each.key?.customer ?? ''),
      }),
    );
  }
  for await (const found of scanHashes(connection, OP, names.customerRecordNames.pattern, CUSTOMER_FIELDS)) {
    yield found.map(({ name, fields }): InspectedRecord => {
      const inspected = { kind: 'customer', record: name } as const;
      const id = names.customerRecords.parse(name);
      if (id === undefined) return { ...inspected, faults: [unbraced(names, name)] };
      if (fields === undefined) return { ...inspected, faults: [wrongType('customer')] };
      return { ...inspected, faults: customerFaults(id, fields), customer: customerRecordFrom(id, fields) };
    });
  }
}

/** Yields all key records in batches, with the faults that they show themselves; some may appear twice. */
export async function* everyKey({ connection, names }: KeyIndex, op: StoreOp): AsyncGenerator<readonly StoredKey[]> {
  for await (const found of scanHashes(connection, op, names.keyRecords.pattern, KEY_FIELDS)) {
    yield found.map(({ name, fields }): StoredKey => {
      const sha256 = names.keyRecords.parse(name) ?? '';
      const inspected = { kind: 'key', record: names.shownKeyRecord(sha256), sha256 } as const;
      if (!isSha256(sha256)) return { ...inspected, faults: [recordFault('bad_name')] };
      if (fields === undefined) return { ...inspected, faults: [wrongType('key')] };
      const copies = (['id', 'name', 'prefix'] as const).filter(
        (field) => hash('sha256', fields[field] ?? '') === sha256,
      );
      const faults = [...keyFaults(fields), ...copies.map((field) => recordFault('holds_key', field))];
      return { ...inspected, faults, key: keyRecordFrom(fields) };
    });
  }
}

/** Resolves to the fault of each key that is not in the indexes, by the key's hash. */
async function indexFaultsOf(
  index: KeyIndex,
  owners: Map<string, string>,
  keys: readonly (KeyRecord & { readonly sha256: string })[],
): Promise<ReadonlyMap<string, readonly [RecordFault]>> {
  const { connection, names } = index;
  const entries = await sendEach(connection, OP, keys, ({ id }) => ['get', names.keyId(id)]);
  const members = await sendEach(connection, OP, keys, ({ id, customer }) => [
    'sismember',
    names.customerKeys(customer),
    id,
  ]);
  const others = entries.map((entry, i) => (typeof entry === 'string' && entry !== keys[i]?.sha256 ? entry : ''));
  const otherRecords = await index.readRecords(OP, others.filter(Boolean));
  const otherIds = new Map(others.filter(Boolean).map((sha256, i) => [sha256, otherRecords[i]?.id]));
  /** Returns the first key found with this id and without an index entry. */
  const ownerOf = (id: string, sha256: string): string => {
    const owner = owners.get(id);
    if (owner === undefined && owners.size < MAX_OWNERS) owners.set(id, sha256);
    return owner ?? sha256;
  };
  const faults = new Map<string, readonly [RecordFault]>();
  keys.forEach(({ sha256, id }, i) => {
    const other = others[i] && otherIds.get(others[i]) === id ? others[i] : undefined;
    const owner = other ?? (entries[i] === sha256 ? sha256 : ownerOf(id, sha256));
    if (owner !== sha256) faults.set(sha256, [recordFault('duplicate_id', names.shownKeyRecord(owner))]);
    else if (entries[i] === undefined || members[i] === undefined) faults.set(sha256, [recordFault('damaged_index')]);
    else if (entries[i] !== sha256 || members[i] !== 1) faults.set(sha256, [recordFault('missing_index')]);
  });
  return faults;
}

function unbraced(names: RedisKeyNames, name: string): RecordFault {
  const id = names.customerRecordNames.parse(name) ?? '';
  return recordFault('unbraced_name', names.customerRecord(isCustomerId(id) ? id : '<customer>'));
}
