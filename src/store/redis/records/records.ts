/**
 * API keys and customers in Redis. Other programs write these hashes too, so no value is trusted: a Redis key of a
 * wrong type or a reply of a wrong form is an error and never "no record". A store that lost its data does not report
 * "no record" either: see installed.ts.
 */
import { readFileSync } from 'node:fs';
import type { InspectedRecord } from '../../record-faults.ts';
import {
  CUSTOMER_FIELDS,
  type CustomerFields,
  customerChangeFields,
  customerFields,
  customerRecordFrom,
  ENFORCED_CUSTOMER_FIELDS,
  ENFORCED_KEY_FIELDS,
  type EnforcedCustomerFields,
  type EnforcedKeyFields,
  enforcedCustomerFrom,
  enforcedKeyFrom,
  type Fields,
  KEY_FIELDS,
  keyChangeFields,
  keyFields,
} from '../../record-fields.ts';
import {
  type CustomerChange,
  type CustomerRecord,
  DamagedRecordError,
  type EnforcedCustomer,
  type EnforcedKey,
  type KeyChange,
  type KeyRecord,
  type KeyReplacement,
  type Page,
  type RecordStore,
  type ReindexReport,
  type Retirement,
  type StoreOp,
  type UpdateCheck,
  unlessRefused,
} from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { customerRecordFromReply, isWrongTypeError, keyRecordFromReply, named } from '../connection/replies.ts';
import type { Mark } from '../installation/installation-mark.ts';
import type { Installed } from '../installation/installed.ts';
import { customerKeysName, customerRecordName, keyIdName, keyRecordName, windowName } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/unexpected-reply.ts';
import { checkedUpdates, type UpdateRecord } from './checked-update.ts';
import type { DamagedRecords } from './damaged-records.ts';
import { Deletion } from './deletion.ts';
import { Inspection } from './inspection.ts';
import { KeyIndex } from './key-index.ts';
import { RecordLists } from './record-lists.ts';
import { Reindexing } from './reindex.ts';

const CREATE_LUA = readFileSync(new URL('./create-record.lua', import.meta.url), 'utf8');
const REVOKE_LUA = readFileSync(new URL('./revoke-key.lua', import.meta.url), 'utf8');
const RESET_USAGE_LUA = readFileSync(new URL('../window/reset-usage.lua', import.meta.url), 'utf8');
const REGISTER_LUA = readFileSync(new URL('./register-key.lua', import.meta.url), 'utf8');
const RETIRE_LUA = readFileSync(new URL('./retire-key.lua', import.meta.url), 'utf8');

interface RecordCommands {
  tollgateCreateRecord(key: string, ...fieldsAndValues: string[]): Promise<unknown>;
  tollgateRevokeKey(key: string, keyId: string, revokedAt: string, ...fieldNames: string[]): Promise<unknown>;
  tollgateResetUsage(window: string, record: string, resetAt: string, ...fieldNames: string[]): Promise<unknown>;
  tollgateRegisterKey(customer: string, customerKeys: string, keyId: string): Promise<unknown>;
  tollgateRetireKey(
    key: string,
    keyId: string,
    expectedExpiry: string,
    replacedBy: string,
    expiresAt: string,
    ...fieldNames: string[]
  ): Promise<unknown>;
}

export interface RedisRecordsOptions {
  /** For reads that requests wait for. Reads only fields that are expected to be short. */
  readonly connection: RedisChannel;
  /** For everything else, so that no request waits behind it. */
  readonly walks: RedisChannel;
  readonly installed: Installed;
  readonly damaged: DamagedRecords;
  readonly keyPrefix: string;
}

interface Reading<R> {
  readonly record: R | undefined;
  /** The installation mark read right after the record. May be undefined only if the record was found. */
  readonly installed: Mark | undefined;
}

/** Must be built before the first command is sent on the connections, because it defines commands. */
export class RedisRecords implements RecordStore {
  readonly #connection: RedisChannel;
  readonly #walks: RedisChannel;
  readonly #redis: RedisClient & RecordCommands;
  readonly #installed: Installed;
  readonly #index: KeyIndex;
  readonly #lists: RecordLists;
  readonly #deletion: Deletion;
  readonly #damaged: DamagedRecords;
  readonly #update: UpdateRecord;
  readonly #prefix: string;

  constructor({ connection, walks, installed, damaged, keyPrefix }: RedisRecordsOptions) {
    const { client } = walks;
    client.defineCommand('tollgateCreateRecord', { numberOfKeys: 1, lua: CREATE_LUA });
    client.defineCommand('tollgateRevokeKey', { numberOfKeys: 1, lua: REVOKE_LUA });
    client.defineCommand('tollgateResetUsage', { numberOfKeys: 2, lua: RESET_USAGE_LUA });
    client.defineCommand('tollgateRegisterKey', { numberOfKeys: 2, lua: REGISTER_LUA });
    client.defineCommand('tollgateRetireKey', { numberOfKeys: 1, lua: RETIRE_LUA });
    this.#connection = connection;
    this.#walks = walks;
    this.#redis = client as RedisClient & RecordCommands;
    this.#installed = installed;
    this.#damaged = damaged;
    this.#prefix = keyPrefix;
    this.#update = checkedUpdates(client);
    this.#index = new KeyIndex(walks, keyPrefix);
    this.#lists = new RecordLists({ connection: walks, index: this.#index, installed, keyPrefix });
    this.#deletion = new Deletion(walks, this.#index, keyPrefix);
  }

  findKey(sha256: string): Promise<EnforcedKey | undefined> {
    const name = keyRecordName(this.#prefix, sha256);
    const recordFrom = (fields: EnforcedKeyFields) => {
      this.#damaged.seeKey(sha256, fields);
      return enforcedKeyFrom(fields);
    };
    return this.#find(this.#connection, 'read_key', name, ENFORCED_KEY_FIELDS, recordFrom);
  }

  async findCustomer(id: string): Promise<EnforcedCustomer | undefined> {
    const name = customerRecordName(this.#prefix, id);
    const recordFrom = (fields: EnforcedCustomerFields) => {
      this.#damaged.seeCustomer(id, fields);
      return enforcedCustomerFrom(id, fields);
    };
    const record = await this.#find(this.#connection, 'read_customer', name, ENFORCED_CUSTOMER_FIELDS, recordFrom);
    if (record === undefined) void this.#damaged.lookForUnbraced(this.#connection.client, id);
    return record;
  }

  findCustomerRecord(id: string): Promise<CustomerRecord | undefined> {
    const name = customerRecordName(this.#prefix, id);
    const recordFrom = (fields: CustomerFields) => customerRecordFrom(id, fields);
    return this.#find(this.#walks, 'read_customer', name, CUSTOMER_FIELDS, recordFrom);
  }

  createCustomer(record: CustomerRecord): Promise<'created' | 'exists'> {
    return this.#walks.run('create_customer', () =>
      this.#create(customerRecordName(this.#prefix, record.id), customerFields(record)),
    );
  }

  /**
   * Creates a key's record and its index entries. They are in different slots of a cluster, so no script can write them
   * together. The record is written after the index entries. A crash in between leaves entries without a record, which
   * every reader ignores and a second attempt completes. The other order could leave a working key that cannot be found
   * to revoke it.
   *
   * The entries are written again after the record, because a concurrent cleanup may have deleted them. The cleanup
   * reads the record again afterwards (see key-index.ts), so one of the two sees the other's write. If the customer no
   * longer exists by then, its deletion may have missed the record, so the record is deleted here. If the customer
   * still exists, a later deletion finds the key in the set.
   */
  createKey(sha256: string, record: KeyRecord): Promise<'created' | 'exists' | 'no_customer'> {
    const op = 'create_key';
    return this.#walks.run(op, async () => {
      const indexName = keyIdName(this.#prefix, record.id);
      const isNewId = (await this.#redis.setnx(indexName, sha256)) === 1;
      if (!isNewId && (await this.#redis.get(indexName)) !== sha256) return 'exists';
      if (!(await this.#register(record))) {
        await this.#redis.del(indexName);
        return 'no_customer';
      }

      const outcome = await this.#create(keyRecordName(this.#prefix, sha256), keyFields(record));
      if (outcome === 'created') {
        await this.#redis.setnx(indexName, sha256);
        if (await this.#register(record)) return outcome;
        await this.#deletion.deleteKey(op, sha256, record);
        return 'no_customer';
      }
      // Removes the entries only if the record has another id. With the same id, a concurrent attempt created it and
      // needs them.
      if ((await this.#readKey(sha256))?.id !== record.id) {
        await this.#redis.srem(customerKeysName(this.#prefix, record.customer), record.id);
        await this.#redis.del(indexName);
      }
      return outcome;
    });
  }

  async findKeyById(keyId: string): Promise<KeyRecord | undefined> {
    const reading = await this.#walks.run('read_key_id', async () => {
      const sha256 = await this.#redis.get(keyIdName(this.#prefix, keyId));
      const record = sha256 === null ? undefined : await this.#readKey(sha256);
      const lookedFor = sha256 === null ? keyIdName(this.#prefix, keyId) : keyRecordName(this.#prefix, sha256);
      return this.#withInstalled(lookedFor, record?.id === keyId ? record : undefined);
    });
    return this.#proven(reading);
  }

  revokeKey(keyId: string, revokedAt: string): Promise<KeyRecord | undefined> {
    return this.#changeKey('revoke_key', keyId, async (name) => {
      const values = await this.#redis.tollgateRevokeKey(name, keyId, revokedAt, ...KEY_FIELDS);
      return keyRecordFromReply(values);
    });
  }

  async resetUsage(customer: string, resetAt: string): Promise<CustomerRecord | undefined> {
    const reading = await this.#walks.run('reset_usage', async () => {
      const names = [windowName(this.#prefix, customer), customerRecordName(this.#prefix, customer)] as const;
      const values = await this.#redis.tollgateResetUsage(...names, resetAt, ...CUSTOMER_FIELDS);
      return this.#withInstalled(names[1], customerRecordFromReply(customer, values));
    });
    return this.#proven(reading);
  }

  async updateCustomer(
    id: string,
    change: CustomerChange,
    check: UpdateCheck<EnforcedCustomer> = permit,
  ): Promise<CustomerRecord | undefined> {
    const name = customerRecordName(this.#prefix, id);
    const update = {
      checked: ENFORCED_CUSTOMER_FIELDS,
      currentFrom: (fields: EnforcedCustomerFields) => enforcedCustomerFrom(id, fields),
      check,
      changes: customerChangeFields(change),
      returned: CUSTOMER_FIELDS,
      recordFrom: (values: unknown) => customerRecordFromReply(id, values),
    };
    const reading = await this.#walks.run('update_customer', async () =>
      this.#withInstalled(name, await this.#update(name, update)),
    );
    return unlessRefused(await this.#proven(reading));
  }

  async updateKey(
    keyId: string,
    change: KeyChange,
    check: UpdateCheck<EnforcedKey> = permit,
  ): Promise<KeyRecord | undefined> {
    const update = {
      checked: ENFORCED_KEY_FIELDS,
      currentFrom: (fields: EnforcedKeyFields) => (fields.id === keyId ? enforcedKeyFrom(fields) : undefined),
      check,
      changes: keyChangeFields(change),
      returned: KEY_FIELDS,
      recordFrom: keyRecordFromReply,
    };
    return unlessRefused(await this.#changeKey('update_key', keyId, (name) => this.#update(name, update)));
  }

  async retireKey(
    keyId: string,
    expected: Pick<KeyRecord, 'expiresAt'>,
    replacement: KeyReplacement,
  ): Promise<Retirement> {
    const retirement = await this.#changeKey('retire_key', keyId, async (name): Promise<Retirement | undefined> => {
      const { replacedBy, expiresAt } = replacement;
      const terms = [expected.expiresAt ?? '', replacedBy, expiresAt] as const;
      const reply = await this.#redis.tollgateRetireKey(name, keyId, ...terms, ...KEY_FIELDS);
      if (reply === null) return undefined;
      if (!Array.isArray(reply)) throw new UnexpectedReplyError('retire-key');
      const record = keyRecordFromReply(reply[1]);
      return record && { outcome: reply[0] === 1 ? 'retired' : 'changed', record };
    });
    return retirement ?? { outcome: 'missing' };
  }

  listCustomers(cursor: string | undefined, limit: number): Promise<Page<CustomerRecord>> {
    return this.#lists.customers(cursor, limit);
  }

  listKeys(cursor: string | undefined, limit: number): Promise<Page<KeyRecord>> {
    return this.#lists.keys(cursor, limit);
  }

  listCustomerKeys(customer: string, cursor: string | undefined, limit: number): Promise<Page<KeyRecord>> {
    return this.#lists.keysOf(customer, cursor, limit);
  }

  async deleteCustomer(id: string): Promise<number | undefined> {
    const keys = await this.#deletion.deleteCustomer(id);
    if (keys !== undefined) return keys;
    return this.#proven(
      await this.#walks.run('delete_customer', () =>
        this.#withInstalled<number>(customerRecordName(this.#prefix, id), undefined),
      ),
    );
  }

  discardKey(keyId: string): Promise<void> {
    return this.#deletion.discardKey(keyId);
  }

  reindex(): Promise<ReindexReport> {
    return new Reindexing(this.#walks, this.#index, this.#prefix).run();
  }

  inspect(): AsyncIterable<readonly InspectedRecord[]> {
    return new Inspection(this.#walks, this.#index, this.#prefix).run();
  }

  /** Adds the key to its customer's set. Resolves to false when the customer does not exist. */
  async #register({ id, customer }: KeyRecord): Promise<boolean> {
    const names = [customerRecordName(this.#prefix, customer), customerKeysName(this.#prefix, customer)] as const;
    return (await this.#redis.tollgateRegisterKey(...names, id)) === 1;
  }

  /** Changes the record that the index entry points to. Resolves to undefined when there is no record or no entry. */
  async #changeKey<R>(
    op: StoreOp,
    keyId: string,
    change: (name: string) => Promise<R | undefined>,
  ): Promise<R | undefined> {
    const reading = await this.#walks.run(op, async () => {
      const sha256 = await this.#redis.get(keyIdName(this.#prefix, keyId));
      if (sha256 === null) return this.#withInstalled<R>(keyIdName(this.#prefix, keyId), undefined);
      const name = keyRecordName(this.#prefix, sha256);
      return this.#withInstalled(name, await change(name));
    });
    return this.#proven(reading);
  }

  /**
   * Reads the installation mark in the same pipeline, after the record. So a record that was lost before the read never
   * counts as one that never existed.
   */
  async #find<Name extends string, R>(
    channel: RedisChannel,
    op: StoreOp,
    name: string,
    fields: readonly Name[],
    recordFrom: (fields: Fields<Name>) => R | undefined,
  ): Promise<R | undefined> {
    let isWrongType = false;
    const reading = channel.run(op, async (redis): Promise<Reading<R>> => {
      const near = this.#installed.markNear(name);
      const [[recordError, values] = [], [installedError, installed] = []] = await redis.batch([
        ['hmget', name, ...fields],
        ['get', near],
      ]);
      isWrongType = isWrongTypeError(recordError);
      if (recordError) throw recordError;
      const record = recordFrom(named(fields, values));
      if (record === undefined && installedError) throw installedError;
      return { record, installed: installedError ? undefined : { name: near, id: installedFrom(installed) } };
    });
    const kind = op === 'read_key' ? 'key' : 'other';
    return this.#proven(await reading.catch((error: unknown) => this.#failed(error, isWrongType, name)), kind);
  }

  /** @throws DamagedRecordError where the record has a wrong type, else `error`. */
  #failed(error: unknown, isWrongType: boolean, name: string): never {
    if (!isWrongType || !(error instanceof Error)) throw error;
    this.#damaged.seeWrongType(name);
    throw new DamagedRecordError(error.message, { cause: error.cause });
  }

  /** Reads the installation mark if there is no record. `lookedFor`: the name under which there was none. */
  async #withInstalled<R>(lookedFor: string, record: R | undefined): Promise<Reading<R>> {
    if (record !== undefined) return { record, installed: undefined };
    const name = this.#installed.markNear(lookedFor);
    return { record, installed: { name, id: await this.#redis.get(name) } };
  }

  /**
   * Returns the record, or undefined when it certainly does not exist. @throws StoreDoubtError when that is uncertain.
   */
  async #proven<R>({ record, installed }: Reading<R>, what: 'key' | 'other' = 'other'): Promise<R | undefined> {
    if (record !== undefined) this.#installed.sawRecord();
    if (installed !== undefined) this.#installed.see(installed);
    if (record === undefined) await this.#installed.requireProof(what);
    return record;
  }

  async #readKey(sha256: string): Promise<KeyRecord | undefined> {
    const values = await this.#redis.hmget(keyRecordName(this.#prefix, sha256), ...KEY_FIELDS);
    return keyRecordFromReply(values);
  }

  async #create(name: string, fields: Fields<string>): Promise<'created' | 'exists'> {
    const set = Object.entries(fields).flatMap(([field, value]) => (value ? [field, value] : []));
    const reply = await this.#redis.tollgateCreateRecord(name, ...set);
    if (reply !== 0 && reply !== 1) throw new UnexpectedReplyError('create-record');
    this.#installed.sawRecord();
    return reply === 1 ? 'created' : 'exists';
  }
}

/** Without a check every record may be changed. */
const permit = () => undefined;

function installedFrom(value: unknown): string | null {
  if (value !== null && typeof value !== 'string') throw new UnexpectedReplyError('GET');
  return value;
}
