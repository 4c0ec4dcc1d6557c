/** Keys and customers in SQLite. Columns have the names and meanings of the Redis fields. */
import type { DatabaseSync } from 'node:sqlite';
import {
  type CustomerFields,
  customerFields,
  customerRecordFrom,
  type KeyFields,
  keyFields,
  keyRecordFrom,
} from '../record-fields.ts';
import type { CustomerRecord, Invalidation, KeyRecord, RecordStore } from '../store.ts';
import { inTransaction } from './database.ts';
import type { RunOperation } from './operation.ts';

/** `changed` is told of every change in the turn in which it is made. */
export function embeddedRecords(
  database: DatabaseSync,
  run: RunOperation,
  changed: (change: Invalidation) => void,
): RecordStore {
  const selectKey = database.prepare('SELECT * FROM api_key WHERE sha256 = ?');
  const selectKeyById = database.prepare('SELECT * FROM api_key WHERE id = ?');
  const selectCustomer = database.prepare('SELECT * FROM customer WHERE id = ?');
  const insertCustomer = database.prepare(
    `INSERT INTO customer (id, plan, requests_per_hour, name, suspended, usage_reset_at)
     VALUES (:id, :plan, :requests_per_hour, :name, :suspended, :usage_reset_at) ON CONFLICT DO NOTHING`,
  );
  const insertKey = database.prepare(
    `INSERT INTO api_key (sha256, id, customer, name, prefix, created_at, expires_at, revoked_at)
     VALUES (:sha256, :id, :customer, :name, :prefix, :created_at, :expires_at, :revoked_at) ON CONFLICT DO NOTHING`,
  );
  const selectSha256 = database.prepare('SELECT sha256 FROM api_key WHERE id = ?');
  const setRevoked = database.prepare(
    `UPDATE api_key SET revoked_at = :revokedAt WHERE id = :id AND coalesce(revoked_at, '') = ''`,
  );
  const setUsageReset = database.prepare('UPDATE customer SET usage_reset_at = :resetAt WHERE id = :id');
  const deleteWindow = database.prepare('DELETE FROM window WHERE customer = ?');
  const deleteBuckets = database.prepare('DELETE FROM bucket WHERE customer = ?');
  const customerFrom = (id: string, row: unknown) =>
    row === undefined ? undefined : customerRecordFrom(id, row as CustomerFields);
  const keyFrom = (row: unknown) => (row === undefined ? undefined : keyRecordFrom(row as KeyFields));

  return {
    findKey: (sha256) => run('read_key', () => keyFrom(selectKey.get(sha256))),

    findCustomer: (id) => run('read_customer', () => customerFrom(id, selectCustomer.get(id))),

    createCustomer: (record) =>
      run('create_customer', () => {
        const { changes } = insertCustomer.run({ id: record.id, ...customerFields(record) });
        if (changes === 0) return 'exists';
        changed({ kind: 'customer', id: record.id });
        return 'created';
      }),

    createKey: (sha256, record) =>
      run('create_key', () => {
        const { changes } = insertKey.run({ sha256, ...keyFields(record) });
        if (changes === 0) return 'exists';
        changed({ kind: 'key', sha256 });
        return 'created';
      }),

    findKeyById: (keyId) => run('read_key_id', () => keyFrom(selectKeyById.get(keyId))),

    revokeKey: (keyId, revokedAt) =>
      run('revoke_key', (): KeyRecord | undefined => {
        const { changes } = setRevoked.run({ id: keyId, revokedAt });
        if (changes > 0) changed({ kind: 'key', sha256: String(selectSha256.get(keyId)?.sha256) });
        return keyFrom(selectKeyById.get(keyId));
      }),

    resetUsage: (id, resetAt) =>
      run('reset_usage', (): CustomerRecord | undefined => {
        const changes = inTransaction(database, () => {
          deleteBuckets.run(id);
          deleteWindow.run(id);
          return setUsageReset.run({ id, resetAt }).changes;
        });
        if (changes > 0) changed({ kind: 'customer', id });
        return customerFrom(id, selectCustomer.get(id));
      }),
  };
}
