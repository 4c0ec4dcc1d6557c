/**
 * Permanent deletion of keys and customers.
 *
 * A key's record, its index entry by id and its customer's records are in different slots of a cluster, so no script
 * can delete them together. The key's record goes first, so a crash leaves only index entries without a record. A
 * customer's record goes last. Until then the deletion can be repeated: once the set of keys is empty, the record is
 * replaced by a mark (see delete-customer.lua), and the usage history is deleted while no program adds to it. If a
 * key's record is written even later, `createKey` itself deletes it: see records.ts.
 */
import type { StoreOp } from '../../observer.ts';
import { sendAll, sendEach } from '../connection/channel.ts';
import type { IndexedKey, KeyIndex } from './key-index.ts';

/**
 * Must be called before the first command is sent on the connection, because it defines commands. `forgetUsage` deletes
 * the usage history of a customer.
 */
export function redisDeletion(index: KeyIndex, forgetUsage: (op: StoreOp, customer: string) => Promise<void>) {
  const { connection, names } = index;
  const deleteKey = connection.client.defineScript(new URL('./delete-key.lua', import.meta.url), 1);
  const deleteKeylessCustomer = connection.client.defineScript(new URL('./delete-customer.lua', import.meta.url), 10);

  /** Deletes the keys that have a record, unless it has another id or customer by now. Resolves to the number deleted. */
  const deleteKeys = async (op: StoreOp, entries: readonly IndexedKey[]): Promise<number> => {
    const keys = entries.flatMap(({ sha256 = '', record }) => (record === undefined ? [] : [{ sha256, ...record }]));
    if (keys.length === 0) return 0;
    const replies = await connection.run(op, () =>
      Promise.all(keys.map(({ sha256, id, customer }) => deleteKey(names.keyRecord(sha256), id, customer))),
    );
    const deleted = keys.filter((_, index) => replies[index] === 1);
    await sendAll(
      connection,
      op,
      deleted.flatMap(({ id, customer }) => [
        ['zrem', names.keyUses, id],
        ['srem', names.customerKeys(customer), id],
        ['del', names.keyId(id)],
      ]),
    );
    return deleted.length;
  };

  /** Adds the roots of the keys to `roots`. */
  const deleteKeysOf = async (op: StoreOp, customer: string, roots: Set<string>): Promise<number> => {
    let deleted = 0;
    for await (const ids of index.idsOf(op, customer)) {
      const entries = await index.read(op, ids);
      const own = entries.filter(({ record }) => record?.customer === customer);
      for (const { id, record } of own) roots.add(record?.root ?? id);
      deleted += await deleteKeys(op, own);
      const others = entries.filter(({ record }) => record === undefined);
      await sendEach(connection, op, others, ({ id }) => ['zrem', names.keyUses, id]);
      await index.dropIds(op, entries);
      await index.dropFromCustomer(op, customer, entries);
    }
    return deleted;
  };

  return {
    deleteKeys,

    /** Deletes a customer and its keys. Resolves to the number of deleted keys; undefined when there is no record. */
    async deleteCustomer(op: StoreOp, customer: string): Promise<number | undefined> {
      const record = names.customerRecord(customer);
      // Does not require a plan: a record without one can be neither read nor created, only deleted.
      if ((await connection.run(op, (redis) => redis.hlen(record))) === 0) return undefined;
      const perCustomer = [
        names.customerKeys(customer),
        record,
        names.window(customer),
        names.grants(customer),
        names.period(customer),
        names.notices(customer),
        names.notifySecret(customer),
        names.formerNotifySecret(customer),
        names.portalSessions(customer),
        names.portalWrites(customer),
      ];
      let deletedKeys = 0;
      let deleted: unknown = 0;
      const roots = new Set<string>();
      while (deleted === 0) {
        deletedKeys += await deleteKeysOf(op, customer, roots);
        deleted = await connection.run(op, () => deleteKeylessCustomer(...perCustomer));
      }
      await forgetUsage(op, customer);
      // A unit granted meanwhile began a window again. Its refund would be subtracted from the history of the next customer
      // of this id. HDEL deletes the record with its only field, but not that of a customer created again.
      await sendEach(connection, op, [...roots], (root) => ['del', names.window(customer, root)]);
      await sendAll(connection, op, [
        ['del', names.window(customer), names.grants(customer), names.period(customer)],
        ['hdel', record, 'deleting'],
      ]);
      return deletedKeys;
    },
  };
}
