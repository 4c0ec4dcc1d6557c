/**
 * Keys and customers in Redis. The two hashes are public (other programs write them), so whatever is found is read with
 * suspicion; a key of a wrong type or a reply of a wrong form is an error and never "no record". Nor does a store that
 * lost its data say "no record": see installed.ts.
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
import { type CustomerRecord, type KeyRecord, type RecordStore, type StoreOp, StoreWipedError } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import type { Installed } from './installed.ts';
import {
  customerKeysName,
  customerRecordName,
  installedName,
  keyIdName,
  keyRecordName,
  windowName,
} from './key-names.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const CREATE_LUA = readFileSync(new URL('./create-record.lua', import.meta.url), 'utf8');
const REVOKE_LUA = readFileSync(new URL('./revoke-key.lua', import.meta.url), 'utf8');
const RESET_USAGE_LUA = readFileSync(new URL('./reset-usage.lua', import.meta.url), 'utf8');

interface RecordCommands {
  tollgateCreateRecord(key: string, ...fieldsAndValues: string[]): Promise<unknown>;
  tollgateRevokeKey(key: string, keyId: string, revokedAt: string, ...fieldNames: string[]): Promise<unknown>;
  tollgateResetUsage(window: string, record: string, resetAt: string, ...fieldNames: string[]): Promise<unknown>;
}

interface Reading<R> {
  readonly record: R | undefined;
  /** What `installed` held right after the record was read; undefined when only that could not be read. */
  readonly installed: string | null | undefined;
}

/** Built before the first command is sent on the connection. */
export class RedisRecords implements RecordStore {
  readonly #connection: RedisConnection;
  readonly #redis: Redis & RecordCommands;
  readonly #installed: Installed;
  readonly #prefix: string;

  constructor(connection: RedisConnection, installed: Installed, keyPrefix: string) {
    connection.client.defineCommand('tollgateCreateRecord', { numberOfKeys: 1, lua: CREATE_LUA });
    connection.client.defineCommand('tollgateRevokeKey', { numberOfKeys: 1, lua: REVOKE_LUA });
    connection.client.defineCommand('tollgateResetUsage', { numberOfKeys: 2, lua: RESET_USAGE_LUA });
    this.#connection = connection;
    this.#installed = installed;
    this.#redis = connection.client as Redis & RecordCommands;
    this.#prefix = keyPrefix;
  }

  findKey(sha256: string): Promise<KeyRecord | undefined> {
    return this.#find('read_key', keyRecordName(this.#prefix, sha256), KEY_FIELDS, keyRecordFrom);
  }

  findCustomer(id: string): Promise<CustomerRecord | undefined> {
    return this.#find('read_customer', customerRecordName(this.#prefix, id), CUSTOMER_FIELDS, (fields) =>
      customerRecordFrom(id, fields),
    );
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

  async findKeyById(keyId: string): Promise<KeyRecord | undefined> {
    const reading = await this.#connection.run('read_key_id', async () => {
      const sha256 = await this.#redis.get(keyIdName(this.#prefix, keyId));
      const record = sha256 === null ? undefined : await this.#readKey(sha256);
      return this.#withInstalled(record?.id === keyId ? record : undefined);
    });
    return this.#unlessWiped(reading);
  }

  async revokeKey(keyId: string, revokedAt: string): Promise<KeyRecord | undefined> {
    const reading = await this.#connection.run('revoke_key', async () => {
      const sha256 = await this.#redis.get(keyIdName(this.#prefix, keyId));
      if (sha256 === null) return this.#withInstalled<KeyRecord>(undefined);
      const name = keyRecordName(this.#prefix, sha256);
      const values = await this.#redis.tollgateRevokeKey(name, keyId, revokedAt, ...KEY_FIELDS);
      return this.#withInstalled(values === null ? undefined : keyRecordFrom(named(KEY_FIELDS, values)));
    });
    return this.#unlessWiped(reading);
  }

  async resetUsage(customer: string, resetAt: string): Promise<CustomerRecord | undefined> {
    const reading = await this.#connection.run('reset_usage', async () => {
      const names = [windowName(this.#prefix, customer), customerRecordName(this.#prefix, customer)] as const;
      const values = await this.#redis.tollgateResetUsage(...names, resetAt, ...CUSTOMER_FIELDS);
      return this.#withInstalled(customerRecordFrom(customer, named(CUSTOMER_FIELDS, values)));
    });
    return this.#unlessWiped(reading);
  }

  /**
   * The id of the installation comes in the same pipeline and after the record, so a record that was lost before it was
   * read is never taken for one that never was.
   */
  async #find<Name extends string, R>(
    op: StoreOp,
    name: string,
    fields: readonly Name[],
    recordFrom: (fields: Fields<Name>) => R | undefined,
  ): Promise<R | undefined> {
    const reading = await this.#connection.run(op, async (): Promise<Reading<R>> => {
      const replies = await this.#redis
        .pipeline()
        .hmget(name, ...fields)
        .get(installedName(this.#prefix))
        .exec();
      const [[recordError, values] = [], [installedError, installed] = []] = replies ?? [];
      if (recordError) throw recordError;
      const record = recordFrom(named(fields, values));
      if (record === undefined && installedError) throw installedError;
      return { record, installed: installedError ? undefined : installedFrom(installed) };
    });
    return this.#unlessWiped(reading);
  }

  async #withInstalled<R>(record: R | undefined): Promise<Reading<R>> {
    if (record !== undefined) return { record, installed: undefined };
    return { record, installed: await this.#redis.get(installedName(this.#prefix)) };
  }

  #unlessWiped<R>({ record, installed }: Reading<R>): R | undefined {
    const isWiped = installed !== undefined && this.#installed.see(installed);
    if (record === undefined && isWiped) throw new StoreWipedError();
    return record;
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

function installedFrom(value: unknown): string | null {
  if (value !== null && typeof value !== 'string') throw new UnexpectedReplyError('GET');
  return value;
}
