/**
 * The two indexes of keys: by id, and by customer. Both may lag behind the key records: other programs write records
 * without index entries, and a crash may leave an entry without a record. So an entry counts only when the record that
 * it points to matches it.
 *
 * An entry without a record may belong to a key that is being created at this moment, because its entries are written
 * first. So code that deletes such an entry reads the record again afterwards, and restores the entry if the record now
 * exists. createKey in turn writes its entries again after the record. Whichever runs later sees the other's write.
 */
import { readFileSync } from 'node:fs';
import { KEY_FIELDS, type KeyFields, keyRecordFrom } from '../../record-fields.ts';
import type { KeyRecord, StoreOp } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { named, pieces, pipelined } from '../connection/replies.ts';
import { customerKeysName, keyIdName, keyRecordName } from '../protocol/key-names.ts';
import { type NamePage, scanSetPage } from './name-scan.ts';

const CHANGE_ENTRY_LUA = readFileSync(new URL('./change-entry.lua', import.meta.url), 'utf8');

/** Ids of a customer's set that are read, and perhaps deleted, in one step. */
const MEMBERS = 200;

interface EntryCommands {
  tollgateChangeEntry(entry: string, expected: string, wanted: string): Promise<unknown>;
}

export interface IndexedKey {
  readonly id: string;
  /** The value of the index entry by id. */
  readonly sha256?: string;
  /** The record that the entry points to, if it has this id. */
  readonly record?: KeyRecord;
}

/** Must be built before the first command is sent on the connection, because it defines a command. */
export class KeyIndex {
  readonly #connection: RedisChannel;
  readonly #redis: RedisClient & EntryCommands;
  readonly #prefix: string;

  constructor(connection: RedisChannel, keyPrefix: string) {
    connection.client.defineCommand('tollgateChangeEntry', { numberOfKeys: 1, lua: CHANGE_ENTRY_LUA });
    this.#connection = connection;
    this.#redis = connection.client as RedisClient & EntryCommands;
    this.#prefix = keyPrefix;
  }

  /** Reads the records with these hashes, in their order; undefined where there is no valid key record. */
  async readRecords(op: StoreOp, sha256s: readonly string[]): Promise<readonly (KeyRecord | undefined)[]> {
    return (await this.readFields(op, sha256s)).map((fields) => fields && keyRecordFrom(fields));
  }

  /** Reads the fields of these records, in their order; undefined where the Redis key is not a hash. */
  async readFields(op: StoreOp, sha256s: readonly string[]): Promise<readonly (KeyFields | undefined)[]> {
    const found: (KeyFields | undefined)[] = [];
    for (const piece of pieces(sha256s)) {
      const commands = piece.map((sha256) => ['hmget', keyRecordName(this.#prefix, sha256), ...KEY_FIELDS] as const);
      const fields = await this.#connection.run(op, async (redis) =>
        (await pipelined(redis, commands)).map((values) =>
          values === undefined ? undefined : named(KEY_FIELDS, values),
        ),
      );
      found.push(...fields);
    }
    return found;
  }

  /** Reads the index entries of these ids and the records that they point to, in the order of `ids`. */
  async read(op: StoreOp, ids: readonly string[]): Promise<readonly IndexedKey[]> {
    const sha256s: unknown[] = [];
    for (const piece of pieces(ids)) {
      const commands = piece.map((id) => ['get', keyIdName(this.#prefix, id)] as const);
      sha256s.push(...(await this.#connection.run(op, (redis) => pipelined(redis, commands))));
    }
    const entries = ids.flatMap((id, index) => {
      const sha256 = sha256s[index];
      return typeof sha256 === 'string' ? [{ id, sha256 }] : [{ id }];
    });
    return this.#withRecords(op, entries);
  }

  /**
   * Points the entry of an id to another record; an empty `to` deletes it. Resolves to false when the entry has changed
   * meanwhile.
   */
  async redirect(op: StoreOp, id: string, from: string, to: string): Promise<boolean> {
    const name = keyIdName(this.#prefix, id);
    return (await this.#connection.run(op, () => this.#redis.tollgateChangeEntry(name, from, to))) === 1;
  }

  /**
   * Deletes the entries of ids without a matching record. Resolves to the number of entries deleted and not restored.
   */
  async dropIds(op: StoreOp, entries: readonly IndexedKey[]): Promise<number> {
    const dropped: IndexedKey[] = [];
    for (const { id, sha256 } of entries) {
      if (sha256 !== undefined && (await this.redirect(op, id, sha256, ''))) dropped.push({ id, sha256 });
    }
    const returned = (await this.#withRecords(op, dropped)).filter(({ record }) => record !== undefined);
    for (const { id, sha256 = '' } of returned) {
      await this.#connection.run(op, (redis) => redis.setnx(keyIdName(this.#prefix, id), sha256));
    }
    return dropped.length - returned.length;
  }

  /**
   * Removes ids from a customer's set that belong to no key of this customer. Resolves to the number of ids removed and
   * not restored.
   */
  async dropFromCustomer(op: StoreOp, customer: string, ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const name = customerKeysName(this.#prefix, customer);
    await this.#connection.run(op, (redis) => redis.srem(name, ...ids));
    const returned = (await this.read(op, ids)).filter(({ record }) => record?.customer === customer);
    if (returned.length > 0) {
      await this.#connection.run(op, (redis) => redis.sadd(name, ...returned.map(({ id }) => id)));
    }
    return ids.length - returned.length;
  }

  /** Yields the ids in a customer's set in batches; some ids may appear twice. */
  async *idsOf(op: StoreOp, customer: string): AsyncGenerator<string[]> {
    const name = customerKeysName(this.#prefix, customer);
    let cursor = '0';
    do {
      const [next, ids] = await this.#connection.run(op, (redis) => redis.sscan(name, cursor, 'COUNT', MEMBERS));
      yield [...new Set(ids)];
      cursor = next;
    } while (cursor !== '0');
  }

  /** Reads a page of at most `limit` ids in a customer's set. @throws InvalidCursorError */
  pageOfIds(op: StoreOp, customer: string, cursor: string | undefined, limit: number): Promise<NamePage> {
    return scanSetPage(this.#connection, op, customerKeysName(this.#prefix, customer), cursor, limit);
  }

  countOf(op: StoreOp, customer: string): Promise<number> {
    return this.#connection.run(op, (redis) => redis.scard(customerKeysName(this.#prefix, customer)));
  }

  async #withRecords(op: StoreOp, entries: readonly IndexedKey[]): Promise<readonly IndexedKey[]> {
    const leading = entries.flatMap(({ id, sha256 }) => (sha256 === undefined ? [] : [{ id, sha256 }]));
    const records = await this.readRecords(
      op,
      leading.map(({ sha256 }) => sha256),
    );
    const found = new Map(leading.map(({ id }, index) => [id, records[index]]));
    return entries.map((entry) => {
      const record = found.get(entry.id);
      return record?.id === entry.id ? { ...entry, record } : entry;
    });
  }
}
