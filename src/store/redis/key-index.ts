/**
 * The two indexes of keys: by id, and by customer. Both may lag behind the keys' records: other programs write records
 * without them, and a crash may leave an entry that leads nowhere. So an entry counts only when the record that it leads
 * to says the same.
 *
 * An entry that leads nowhere may belong to a key that is being created at this very moment: its entries come first. So
 * whoever takes one away looks for the record once more afterwards and puts the entry back if the key has come; and
 * createKey writes its entries again after the record. Whichever of the two is later sees the other.
 */
import { readFileSync } from 'node:fs';
import { KEY_FIELDS, type KeyFields, keyRecordFrom } from '../record-fields.ts';
import type { KeyRecord, StoreOp } from '../store.ts';
import type { RedisChannel } from './channel.ts';
import type { RedisClient } from './client.ts';
import { customerKeysName, keyIdName, keyRecordName } from './key-names.ts';
import { type NamePage, scanSetPage } from './name-scan.ts';
import { named, pieces, pipelined } from './replies.ts';

const CHANGE_ENTRY_LUA = readFileSync(new URL('./change-entry.lua', import.meta.url), 'utf8');

/** Ids of a customer's set that are read, and perhaps deleted, in one step. */
const MEMBERS = 200;

interface EntryCommands {
  tollgateChangeEntry(entry: string, expected: string, wanted: string): Promise<unknown>;
}

export interface IndexedKey {
  readonly id: string;
  /** What the entry by id holds. */
  readonly sha256?: string;
  /** Of this id. */
  readonly record?: KeyRecord;
}

/** Built before the first command is sent on the connection. */
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

  /** The records of these names, in their order; undefined for what is no key. */
  async readRecords(op: StoreOp, sha256s: readonly string[]): Promise<readonly (KeyRecord | undefined)[]> {
    return (await this.readFields(op, sha256s)).map((fields) => fields && keyRecordFrom(fields));
  }

  /** The fields of these records, in their order; undefined for what is no hash. */
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

  /** Where the entries of these ids lead, in their order. */
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

  /** Lets the entry of an id lead to another record. False when it has been changed meanwhile. */
  async redirect(op: StoreOp, id: string, from: string, to: string): Promise<boolean> {
    const name = keyIdName(this.#prefix, id);
    return (await this.#connection.run(op, () => this.#redis.tollgateChangeEntry(name, from, to))) === 1;
  }

  /** Takes away the entries of ids that lead to no record. The number of those that are gone. */
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

  /** Takes ids out of a customer's set that lead to no key of it. The number of those that are gone. */
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

  /** The ids in a customer's set, in pieces; some perhaps twice. */
  async *idsOf(op: StoreOp, customer: string): AsyncGenerator<string[]> {
    const name = customerKeysName(this.#prefix, customer);
    let cursor = '0';
    do {
      const [next, ids] = await this.#connection.run(op, (redis) => redis.sscan(name, cursor, 'COUNT', MEMBERS));
      yield [...new Set(ids)];
      cursor = next;
    } while (cursor !== '0');
  }

  /** At most `limit` of the ids in a customer's set. @throws InvalidCursorError */
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
