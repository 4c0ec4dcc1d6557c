/**
 * The two indexes of keys: by id, and by customer. Both may lag behind the key records: other programs write records
 * without index entries, and a crash may leave an entry without a record. So an entry counts only when the record that
 * it points to matches it.
 *
 * An entry without a record may belong to a key that is being created at this moment, because its entries are written
 * first. So code that deletes such an entry reads the record again afterwards, and restores the entry if the record now
 * exists. createKey in turn writes its entries again after the record. Whichever runs later sees the other's write.
 */
import type { StoreOp } from '../../observer.ts';
import { type RecordFault, recordFault } from '../../record-faults.ts';
import { KEY_FIELDS, type KeyRecord, keyRecordFrom } from '../../record-fields.ts';
import { type RedisChannel, readHashes, sendEach } from '../connection/channel.ts';
import { pipelined, type RunScript, scanSteps } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

/** Ids of a customer's set that are read, and perhaps deleted, in one step. */
const SET_SCAN_COUNT = 200;

export interface IndexedKey {
  readonly id: string;
  /** The value of the index entry by id. */
  readonly sha256?: string;
  /** The record that the entry points to, if it has this id. */
  readonly record?: KeyRecord;
}

/** Must be built before the first command is sent on the connection, because it defines a command. */
export class KeyIndex {
  readonly connection: RedisChannel;
  readonly names: RedisKeyNames;
  readonly #changeEntry: RunScript;

  constructor(connection: RedisChannel, names: RedisKeyNames) {
    this.connection = connection;
    this.names = names;
    this.#changeEntry = connection.client.defineScript(new URL('./change-entry.lua', import.meta.url), 1);
  }

  /** Reads the records with these hashes, in their order; undefined where there is no valid key record. */
  async readRecords(op: StoreOp, sha256s: readonly string[]): Promise<readonly (KeyRecord | undefined)[]> {
    const records = sha256s.map((sha256) => this.names.keyRecord(sha256));
    const read = await readHashes(this.connection, op, records, KEY_FIELDS);
    return read.map((fields) => fields && keyRecordFrom(fields));
  }

  /** Reads the index entries of these ids and the records that they point to, in the order of `ids`. */
  async read(op: StoreOp, ids: readonly string[]): Promise<readonly IndexedKey[]> {
    const sha256s = await sendEach(this.connection, op, ids, (id) => ['get', this.names.keyId(id)]);
    const entries = ids.map((id, index) => {
      const sha256 = sha256s[index];
      return typeof sha256 === 'string' ? { id, sha256 } : { id };
    });
    return this.#withRecords(op, entries);
  }

  /**
   * Points the entry of an id to this key. Resolves to a fault if another key with a record has the id, or the entry
   * cannot be read. Call it within `run` of the connection.
   */
  async claimId(op: StoreOp, id: string, sha256: string): Promise<'added' | 'present' | RecordFault> {
    const name = this.names.keyId(id);
    const [added, present] = await pipelined(this.connection.client, [
      ['setnx', name, sha256],
      ['get', name],
    ]);
    if (added === 1) return 'added';
    if (present === sha256) return 'present';
    const [{ sha256: owner, record } = {}] = await this.read(op, [id]);
    if (owner === sha256) return 'present';
    if (owner === undefined) return recordFault('damaged_index');
    if (record !== undefined) return recordFault('duplicate_id', this.names.shownKeyRecord(owner));
    // Another program deleted the record of the key that had this id.
    return (await this.redirect(op, id, owner, sha256)) ? 'added' : recordFault('damaged_index');
  }

  /**
   * Points the entry of an id to another record; an empty `to` deletes it. Resolves to false when the entry has changed
   * meanwhile.
   */
  async redirect(op: StoreOp, id: string, from: string, to: string): Promise<boolean> {
    const name = this.names.keyId(id);
    return (await this.connection.run(op, () => this.#changeEntry(name, from, to))) === 1;
  }

  /**
   * Deletes the entries of ids without a matching record. Resolves to the number of entries deleted and not restored.
   */
  async dropIds(op: StoreOp, entries: readonly IndexedKey[]): Promise<number> {
    const dropped: IndexedKey[] = [];
    for (const { id, sha256, record } of entries) {
      if (record !== undefined || sha256 === undefined) continue;
      if (await this.redirect(op, id, sha256, '')) dropped.push({ id, sha256 });
    }
    const restored = (await this.#withRecords(op, dropped)).filter(({ record }) => record !== undefined);
    for (const { id, sha256 = '' } of restored) {
      await this.connection.run(op, (redis) => redis.setnx(this.names.keyId(id), sha256));
    }
    return dropped.length - restored.length;
  }

  /**
   * Removes ids from a customer's set that belong to no key of this customer. Resolves to the number of ids removed and
   * not restored.
   */
  async dropFromCustomer(op: StoreOp, customer: string, entries: readonly IndexedKey[]): Promise<number> {
    const ids = entries.flatMap(({ id, record }) => (record?.customer === customer ? [] : [id]));
    if (ids.length === 0) return 0;
    const name = this.names.customerKeys(customer);
    await this.connection.run(op, (redis) => redis.srem(name, ...ids));
    const restored = (await this.read(op, ids)).filter(({ record }) => record?.customer === customer);
    if (restored.length > 0) {
      await this.connection.run(op, (redis) => redis.sadd(name, ...restored.map(({ id }) => id)));
    }
    return ids.length - restored.length;
  }

  /** Yields the ids in a customer's set in batches; some ids may appear twice. */
  idsOf(op: StoreOp, customer: string): AsyncGenerator<string[]> {
    const name = this.names.customerKeys(customer);
    return scanSteps((cursor) =>
      this.connection.run(op, (redis) => redis.sscan(name, cursor, 'COUNT', SET_SCAN_COUNT)),
    );
  }

  async #withRecords(op: StoreOp, entries: readonly IndexedKey[]): Promise<readonly IndexedKey[]> {
    const sha256s = entries.flatMap(({ sha256 }) => sha256 ?? []);
    const records = await this.readRecords(op, sha256s);
    const found = new Map(sha256s.map((sha256, index) => [sha256, records[index]]));
    return entries.map((entry) => {
      const record = found.get(entry.sha256 ?? '');
      return record?.id === entry.id ? { ...entry, record } : entry;
    });
  }
}
