/**
 * Keys and customers in Redis. The two hashes are public (other programs write them), so whatever is found is read with
 * suspicion; a key of a wrong type or a reply of a wrong form is an error and never "no record".
 */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import {
  CUSTOMER_FIELDS,
  customerFields,
  customerRecordFrom,
  type Fields,
  KEY_FIELDS,
  keyFields,
  keyRecordFrom,
} from '../record-fields.ts';
import type { CustomerRecord, KeyRecord, RecordStore } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { customerKeysName, customerRecordName, keyIdName, keyRecordName } from './key-names.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const CREATE_LUA = readFileSync(new URL('./create-record.lua', import.meta.url), 'utf8');
const REVOKE_LUA = readFileSync(new URL('./revoke-key.lua', import.meta.url), 'utf8');

interface RecordCommands {
  tollgateCreateRecord(key: string, ...fieldsAndValues: string[]): Promise<unknown>;
  tollgateRevokeKey(key: string, keyId: string, revokedAt: string, ...fieldNames: string[]): Promise<unknown>;
}

/** Built before the first command is sent on the connection. */
export class RedisRecords implements RecordStore {
  readonly #connection: RedisConnection;
  readonly #redis: Redis & RecordCommands;
  readonly #prefix: string;

  constructor(connection: RedisConnection, keyPrefix: string) {
    connection.client.defineCommand('tollgateCreateRecord', { numberOfKeys: 1, lua: CREATE_LUA });
    connection.client.defineCommand('tollgateRevokeKey', { numberOfKeys: 1, lua: REVOKE_LUA });
    this.#connection = connection;
    this.#redis = connection.client as Redis & RecordCommands;
    this.#prefix = keyPrefix;
  }

  findKey(sha256: string): Promise<KeyRecord | undefined> {
    return this.#connection.run('read_key', () => this.#readKey(sha256));
  }

  findCustomer(id: string): Promise<CustomerRecord | undefined> {
    return this.#connection.run('read_customer', async () => {
      const values = await this.#redis.hmget(customerRecordName(this.#prefix, id), ...CUSTOMER_FIELDS);
      return customerRecordFrom(id, named(CUSTOMER_FIELDS, values));
    });
  }

  createCustomer(record: CustomerRecord): Promise<'created' | 'exists'> {
    return this.#connection.run('create_customer', () =>
      this.#create(customerRecordName(this.#prefix, record.id), customerFields(record)),
    );
  }

  /**
   * The three Redis keys lie in different slots of a cluster, so no script may write them together. The key's own record
   * comes last: a crash before it leaves index entries that lead nowhere, which every reader ignores and a second
   * attempt completes. The other order could leave a working key that cannot be found to be revoked.
   */
  createKey(sha256: string, record: KeyRecord): Promise<'created' | 'exists'> {
    return this.#connection.run('create_key', async () => {
      const indexName = keyIdName(this.#prefix, record.id);
      const isNewId = (await this.#redis.setnx(indexName, sha256)) === 1;
      if (!isNewId && (await this.#redis.get(indexName)) !== sha256) return 'exists';
      await this.#redis.sadd(customerKeysName(this.#prefix, record.customer), record.id);

      const outcome = await this.#create(keyRecordName(this.#prefix, sha256), keyFields(record));
      // Another id owns this key. When the same id does, a concurrent attempt created it and needs these entries.
      if (outcome === 'exists' && (await this.#readKey(sha256))?.id !== record.id) {
        await this.#redis.srem(customerKeysName(this.#prefix, record.customer), record.id);
        await this.#redis.del(indexName);
      }
      return outcome;
    });
  }

  findKeyById(keyId: string): Promise<KeyRecord | undefined> {
    return this.#connection.run('read_key_id', async () => {
      const sha256 = await this.#redis.get(keyIdName(this.#prefix, keyId));
      const record = sha256 === null ? undefined : await this.#readKey(sha256);
      return record?.id === keyId ? record : undefined;
    });
  }

  revokeKey(keyId: string, revokedAt: string): Promise<KeyRecord | undefined> {
    return this.#connection.run('revoke_key', async () => {
      const sha256 = await this.#redis.get(keyIdName(this.#prefix, keyId));
      if (sha256 === null) return undefined;
      const name = keyRecordName(this.#prefix, sha256);
      const values = await this.#redis.tollgateRevokeKey(name, keyId, revokedAt, ...KEY_FIELDS);
      return values === null ? undefined : keyRecordFrom(named(KEY_FIELDS, values));
    });
  }

  async #readKey(sha256: string): Promise<KeyRecord | undefined> {
    const values = await this.#redis.hmget(keyRecordName(this.#prefix, sha256), ...KEY_FIELDS);
    return keyRecordFrom(named(KEY_FIELDS, values));
  }

  async #create(name: string, fields: Fields<string>): Promise<'created' | 'exists'> {
    const set = Object.entries(fields).flatMap(([field, value]) => (value ? [field, value] : []));
    const reply = await this.#redis.tollgateCreateRecord(name, ...set);
    if (reply !== 0 && reply !== 1) throw new UnexpectedReplyError('create-record');
    return reply === 1 ? 'created' : 'exists';
  }
}

function named<Name extends string>(names: readonly Name[], values: unknown): Fields<Name> {
  const isFieldList =
    Array.isArray(values) &&
    values.length === names.length &&
    values.every((value) => value === null || typeof value === 'string');
  if (!isFieldList) throw new UnexpectedReplyError('HMGET');
  return Object.fromEntries(names.map((name, index) => [name, values[index]])) as Fields<Name>;
}
