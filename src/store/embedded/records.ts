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
import type { CustomerRecord, KeyRecord, RecordStore } from '../store.ts';
import type { RunOperation } from './operation.ts';

export function embeddedRecords(database: DatabaseSync, run: RunOperation): RecordStore {
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
  const setRevoked = database.prepare(
    `UPDATE api_key SET revoked_at = :revokedAt WHERE id = :id AND coalesce(revoked_at, '') = ''`,
  );
  const keyFrom = (row: unknown) => (row === undefined ? undefined : keyRecordFrom(row as KeyFields));

  return {
    findKey: (sha256) => run('read_key', () => keyFrom(selectKey.get(sha256))),

    findCustomer: (id) =>
      run('read_customer', (): CustomerRecord | undefined => {
        const row = selectCustomer.get(id);
        return row === undefined ? undefined : customerRecordFrom(id, row as CustomerFields);
      }),

    createCustomer: (record) =>
      run('create_customer', () => {
        const { changes } = insertCustomer.run({ id: record.id, ...customerFields(record) });
        return changes === 0 ? 'exists' : 'created';
      }),

    createKey: (sha256, record) =>
      run('create_key', () => {
        const { changes } = insertKey.run({ sha256, ...keyFields(record) });
        return changes === 0 ? 'exists' : 'created';
      }),

    findKeyById: (keyId) => run('read_key_id', () => keyFrom(selectKeyById.get(keyId))),

    revokeKey: (keyId, revokedAt) =>
      run('revoke_key', (): KeyRecord | undefined => {
        setRevoked.run({ id: keyId, revokedAt });
        return keyFrom(selectKeyById.get(keyId));
      }),
  };
}
