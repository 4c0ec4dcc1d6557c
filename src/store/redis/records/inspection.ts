/**
 * Reads every key and customer record as stored, and compares the keys with their indexes. Each step is short. Between
 * steps the inspection keeps only the ids of keys without an index entry, up to {@link MOST_OWNERS}.
 */
import { hash } from 'node:crypto';
import {
  BAD_NAME,
  DAMAGED_INDEX,
  duplicateId,
  holdsKey,
  type InspectedCustomer,
  type InspectedKey,
  type InspectedRecord,
  MISSING_INDEX,
  type RecordFault,
  unbracedName,
  wrongType,
} from '../../record-faults.ts';
import { CUSTOMER_FIELDS, type KeyFields } from '../../record-fields.ts';
import { isCustomerId, isKeyId } from '../../record-ids.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { Command } from '../connection/client.ts';
import { isEmpty, named, pieces, pipelined } from '../connection/replies.ts';
import {
  CUSTOMER_RECORD_NAMES,
  CUSTOMER_RECORDS,
  customerKeysName,
  customerRecordName,
  isSha256,
  KEY_RECORDS,
  keyIdName,
  keyRecordName,
  shownKeyRecordName,
} from '../protocol/key-names.ts';
import type { KeyIndex } from './key-index.ts';
import { deletedOf, scanAll } from './name-scan.ts';

const OP = 'inspect';
/** They take some ten megabytes. */
const MOST_OWNERS = 100_000;

/** A key that can be looked up in the indexes. */
interface IndexableKey {
  readonly sha256: string;
  readonly id: string;
  readonly customer: string;
}

export class Inspection {
  readonly #connection: RedisChannel;
  readonly #index: KeyIndex;
  readonly #prefix: string;
  /** Hashes of the keys without an index entry by id, by key id. */
  readonly #owners = new Map<string, string>();

  constructor(connection: RedisChannel, index: KeyIndex, keyPrefix: string) {
    this.#connection = connection;
    this.#index = index;
    this.#prefix = keyPrefix;
  }

  async *run(): AsyncGenerator<readonly InspectedRecord[]> {
    for await (const names of scanAll(this.#connection, OP, KEY_RECORDS.pattern(this.#prefix))) {
      yield await this.#keys(names);
    }
    for await (const names of scanAll(this.#connection, OP, CUSTOMER_RECORD_NAMES.pattern(this.#prefix))) {
      yield await this.#customers(names);
    }
  }

  async #keys(names: readonly string[]): Promise<readonly InspectedKey[]> {
    const sha256s = names.flatMap((name) => KEY_RECORDS.parse(this.#prefix, name) ?? []);
    const found = await this.#index.readFields(OP, sha256s);
    const suspects = sha256s.filter((_, i) => isEmpty(found[i])).map((sha256) => keyRecordName(this.#prefix, sha256));
    const deleted = await deletedOf(this.#connection, OP, suspects);
    const indexable = sha256s.flatMap((sha256, i): IndexableKey[] => {
      const { id, customer } = found[i] ?? {};
      const isIndexable = isSha256(sha256) && id && customer && isKeyId(id) && isCustomerId(customer);
      return isIndexable ? [{ sha256, id, customer }] : [];
    });
    const indexFaults = await this.#indexFaults(indexable);
    const customers = await this.#existing(indexable.map(({ customer }) => customer));
    return sha256s.flatMap((sha256, i): InspectedKey[] => {
      if (deleted.has(keyRecordName(this.#prefix, sha256))) return [];
      const fields = found[i];
      return [
        {
          kind: 'key',
          record: shownKeyRecordName(this.#prefix, sha256),
          found: isSha256(sha256) ? (fields ?? wrongType('key')) : BAD_NAME,
          faults: [...(indexFaults.get(sha256) ?? []), ...(fields ? fieldsWithKey(sha256, fields).map(holdsKey) : [])],
          customerExists: customers.get(fields?.customer ?? ''),
        },
      ];
    });
  }

  async #indexFaults(keys: readonly IndexableKey[]): Promise<ReadonlyMap<string, readonly [RecordFault]>> {
    const entries = await this.#ask(keys.map(({ id }) => ['get', keyIdName(this.#prefix, id)]));
    const members = await this.#ask(
      keys.map(({ id, customer }) => ['sismember', customerKeysName(this.#prefix, customer), id]),
    );
    const others = entries.map((entry, i) => (typeof entry === 'string' && entry !== keys[i]?.sha256 ? entry : ''));
    const otherRecords = await this.#index.readRecords(OP, others.filter(Boolean));
    const otherIds = new Map(others.filter(Boolean).map((sha256, i) => [sha256, otherRecords[i]?.id]));
    const faults = new Map<string, readonly [RecordFault]>();
    keys.forEach(({ sha256, id }, i) => {
      const other = others[i] && otherIds.get(others[i]) === id ? others[i] : undefined;
      const owner = other ?? (entries[i] === sha256 ? sha256 : this.#ownerOf(id, sha256));
      if (owner !== sha256) faults.set(sha256, [duplicateId(shownKeyRecordName(this.#prefix, owner))]);
      else if (entries[i] === undefined || members[i] === undefined) faults.set(sha256, [DAMAGED_INDEX]);
      else if (entries[i] !== sha256 || members[i] !== 1) faults.set(sha256, [MISSING_INDEX]);
    });
    return faults;
  }

  /** Returns the first key found with this id and without an index entry. */
  #ownerOf(id: string, sha256: string): string {
    const owner = this.#owners.get(id);
    if (owner === undefined && this.#owners.size < MOST_OWNERS) this.#owners.set(id, sha256);
    return owner ?? sha256;
  }

  async #customers(names: readonly string[]): Promise<readonly InspectedCustomer[]> {
    const replies = await this.#ask(names.map((name) => ['hmget', name, ...CUSTOMER_FIELDS]));
    const found = replies.map((values) => (values === undefined ? undefined : named(CUSTOMER_FIELDS, values)));
    const suspects = names.filter((_, i) => isEmpty(found[i]));
    const deleted = await deletedOf(this.#connection, OP, suspects);
    return names.flatMap((name, i): InspectedCustomer[] => {
      if (deleted.has(name)) return [];
      const id = CUSTOMER_RECORDS.parse(this.#prefix, name);
      const fields = found[i];
      if (id === undefined) return [{ kind: 'customer', record: name, found: this.#unbraced(name) }];
      return [{ kind: 'customer', record: name, found: fields ? { id, fields } : wrongType('customer') }];
    });
  }

  #unbraced(name: string): RecordFault {
    const id = CUSTOMER_RECORD_NAMES.parse(this.#prefix, name) ?? '';
    return unbracedName(customerRecordName(this.#prefix, isCustomerId(id) ? id : '<customer>'));
  }

  /** Returns whether each customer's record name exists in Redis, whatever its type. */
  async #existing(ids: readonly string[]): Promise<ReadonlyMap<string, boolean>> {
    const distinct = [...new Set(ids)];
    const replies = await this.#ask(distinct.map((id) => ['exists', customerRecordName(this.#prefix, id)]));
    return new Map(distinct.map((id, i) => [id, replies[i] === 1]));
  }

  async #ask(commands: readonly Command[]): Promise<unknown[]> {
    const replies: unknown[] = [];
    for (const piece of pieces(commands)) {
      replies.push(...(await this.#connection.run(OP, (redis) => pipelined(redis, piece))));
    }
    return replies;
  }
}

/** Returns the fields for people that contain the API key itself: their SHA-256 is the record's. */
function fieldsWithKey(sha256: string, fields: KeyFields): readonly string[] {
  return (['id', 'name', 'prefix'] as const).filter((field) => hash('sha256', fields[field] ?? '') === sha256);
}
