/**
 * Permanent deletion of keys and customers.
 *
 * A key's record, its index entry by id and its customer's records are in different slots of a cluster, so no script
 * can delete them together. The key's record goes first, so a crash leaves only index entries without a record. A
 * customer's record goes last, and only when its set of keys is empty. Until then the deletion can be repeated, and
 * also deletes keys created meanwhile. If a key's record is written even later, `createKey` itself deletes it: see
 * records.ts.
 */
import { readFileSync } from 'node:fs';
import type { KeyRecord, StoreOp } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { pipelined } from '../connection/replies.ts';
import {
  customerKeysName,
  customerRecordName,
  keyIdName,
  keyRecordName,
  keyUsesName,
  windowName,
} from '../protocol/key-names.ts';
import type { IndexedKey, KeyIndex } from './key-index.ts';

const DELETE_KEY_LUA = readFileSync(new URL('./delete-key.lua', import.meta.url), 'utf8');
const DELETE_CUSTOMER_LUA = readFileSync(new URL('./delete-customer.lua', import.meta.url), 'utf8');

interface DeletionCommands {
  tollgateDeleteKey(record: string, keyId: string, customer: string): Promise<unknown>;
  tollgateDeleteCustomer(record: string, window: string, keys: string): Promise<unknown>;
}

/** Must be built before the first command is sent on the connection, because it defines commands. */
export class Deletion {
  readonly #connection: RedisChannel;
  readonly #redis: RedisClient & DeletionCommands;
  readonly #index: KeyIndex;
  readonly #prefix: string;

  constructor(connection: RedisChannel, index: KeyIndex, keyPrefix: string) {
    connection.client.defineCommand('tollgateDeleteKey', { numberOfKeys: 1, lua: DELETE_KEY_LUA });
    connection.client.defineCommand('tollgateDeleteCustomer', { numberOfKeys: 3, lua: DELETE_CUSTOMER_LUA });
    this.#connection = connection;
    this.#redis = connection.client as RedisClient & DeletionCommands;
    this.#index = index;
    this.#prefix = keyPrefix;
  }

  async discardKey(keyId: string): Promise<void> {
    const op = 'discard_key';
    await this.#deleteKeys(op, await this.#index.read(op, [keyId]));
  }

  /** Like {@link discardKey}, but also works when no index entry points to the key. */
  async deleteKey(op: StoreOp, sha256: string, record: KeyRecord): Promise<void> {
    await this.#deleteKeys(op, [{ id: record.id, sha256, record }]);
  }

  /**
   * Deletes a customer and its keys. Resolves to the number of deleted keys; undefined when the customer has no record.
   */
  async deleteCustomer(customer: string): Promise<number | undefined> {
    const op = 'delete_customer';
    const record = customerRecordName(this.#prefix, customer);
    // Does not require a plan: a record without one can be neither read nor created, only deleted.
    if ((await this.#connection.run(op, (redis) => redis.hlen(record))) === 0) return undefined;
    let deletedKeys = 0;
    let deleted: unknown = 0;
    while (deleted === 0) {
      deletedKeys += await this.#deleteKeysOf(op, customer);
      deleted = await this.#connection.run(op, () =>
        this.#redis.tollgateDeleteCustomer(
          record,
          windowName(this.#prefix, customer),
          customerKeysName(this.#prefix, customer),
        ),
      );
    }
    return deletedKeys;
  }

  async #deleteKeysOf(op: StoreOp, customer: string): Promise<number> {
    let deleted = 0;
    for await (const ids of this.#index.idsOf(op, customer)) {
      const entries = await this.#index.read(op, ids);
      const isOwn = ({ record }: IndexedKey) => record?.customer === customer;
      deleted += await this.#deleteKeys(op, entries.filter(isOwn));
      const strays = entries.filter((entry) => !isOwn(entry));
      await this.#index.dropIds(
        op,
        strays.filter(({ record }) => record === undefined),
      );
      await this.#index.dropFromCustomer(
        op,
        customer,
        strays.map(({ id }) => id),
      );
    }
    return deleted;
  }

  /**
   * Deletes the keys that have a record, unless the record has another id or customer by now. Resolves to the number
   * deleted.
   */
  async #deleteKeys(op: StoreOp, entries: readonly IndexedKey[]): Promise<number> {
    const keys = entries.flatMap(({ sha256 = '', record }) => (record === undefined ? [] : [{ sha256, ...record }]));
    if (keys.length === 0) return 0;
    const replies = await this.#connection.run(op, () =>
      Promise.all(
        keys.map(({ sha256, id, customer }) =>
          this.#redis.tollgateDeleteKey(keyRecordName(this.#prefix, sha256), id, customer),
        ),
      ),
    );
    const deleted = keys.filter((_, index) => replies[index] === 1);
    await this.#connection.run(op, (redis) =>
      pipelined(
        redis,
        deleted.flatMap(({ id, customer }) => [
          ['zrem', keyUsesName(this.#prefix), id],
          ['srem', customerKeysName(this.#prefix, customer), id],
          ['del', keyIdName(this.#prefix, id)],
        ]),
      ),
    );
    return deleted.length;
  }
}
