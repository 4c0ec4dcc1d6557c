/**
 * API keys and customers in Redis. Other programs write these hashes too, so no value is trusted: a Redis key of a
 * wrong type or a reply of a wrong form is an error and never "no record". A store that lost its data does not report
 * "no record" either: see data-loss-detection.ts.
 */
import { DamagedRecordError, StoreUnavailableError } from '../../errors.ts';
import type { Invalidations } from '../../invalidations.ts';
import type { StoreOp } from '../../observer.ts';
import { type DecideChange, recordChanges } from '../../record-changes.ts';
import {
  CUSTOMER_FIELDS,
  type CustomerFields,
  customerFields,
  customerRecordFrom,
  ENFORCED_CUSTOMER_FIELDS,
  ENFORCED_KEY_FIELDS,
  type Fields,
  KEY_FIELDS,
  type KeyFields,
  type KeyRecord,
  keyFields,
  keyRecordFrom,
} from '../../record-fields.ts';
import type { RecordStore } from '../../records.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { isWrongTypeError, named, textFrom } from '../connection/client.ts';
import type { DataLossDetection, Mark } from '../installation/data-loss-detection.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';
import { RESET_PERIOD_LUA, resetPeriodArguments } from '../window/window-scripts.ts';
import { CustomerDirectory } from './customer-directory.ts';
import type { DamagedRecords } from './damaged-records.ts';
import { redisDeletion } from './deletion.ts';
import { inspectRecords } from './inspection.ts';
import { KeyIndex } from './key-index.ts';
import { redisRecordLists } from './record-lists.ts';
import { reindexKeys } from './reindex.ts';

/** An attempt to update a record fails when another program changes it between the read and the write. */
const MAX_UPDATE_ATTEMPTS = 20;

interface RedisRecordsOptions {
  /** For reads that requests wait for. Reads only fields that are expected to be short. */
  readonly connection: RedisChannel;
  /** For everything else, so that no request waits behind it. */
  readonly background: RedisChannel;
  readonly dataLoss: DataLossDetection;
  readonly damaged: DamagedRecords;
  readonly pushed: Pick<Invalidations, 'connected' | 'subscribe'>;
  readonly forgetUsage: (op: StoreOp, customer: string) => Promise<void>;
  readonly names: RedisKeyNames;
}

interface Reading<R> {
  readonly record: R | undefined;
  /** The installation mark read right after the record. May be undefined only if the record was found. */
  readonly mark: Mark | undefined;
}

/** Must be called before the first command is sent on the connections, because it defines commands. */
export function redisRecords(options: RedisRecordsOptions): RecordStore {
  const { connection, background, dataLoss, damaged, pushed, forgetUsage, names } = options;
  const redis = background.client;
  const createRecord = redis.defineScript(new URL('./create-record.lua', import.meta.url), 1);
  const resetUsage = redis.defineScript(new URL('../window/reset-usage.lua', import.meta.url), 3);
  const resetPeriod = redis.defineText('reset-period', RESET_PERIOD_LUA, 2);
  const registerKey = redis.defineScript(new URL('./register-key.lua', import.meta.url), 2);
  const writeIfUnchanged = redis.defineScript(new URL('./update-record.lua', import.meta.url), 1);
  const index = new KeyIndex(background, names);
  const deletion = redisDeletion(index, forgetUsage);
  const lists = redisRecordLists(index, dataLoss);
  const directory = new CustomerDirectory({ records: lists, pushed });

  /**
   * Returns the record, or undefined when it certainly does not exist. @throws StoreDoubtError when that is uncertain.
   */
  const proven = async <R>(reading: Reading<R>, what: 'key' | 'other' = 'other'): Promise<R | undefined> => {
    if (reading.record !== undefined) dataLoss.sawRecord();
    if (reading.mark !== undefined) dataLoss.see(reading.mark);
    if (reading.record === undefined) await dataLoss.requireCertainty(what);
    return reading.record;
  };

  /**
   * Reads the installation mark in the same pipeline, after the record. So a record that was lost before the read never
   * counts as one that never existed.
   */
  const find = async <Name extends string, R>(
    channel: RedisChannel,
    op: StoreOp,
    name: string,
    fields: readonly Name[],
    recordFrom: (fields: Fields<Name>) => R | undefined,
  ): Promise<R | undefined> => {
    let isWrongType = false;
    const reading = channel.run(op, async (client): Promise<Reading<R>> => {
      const markName = dataLoss.markNear(name);
      const [[recordError, values] = [], [markError, mark] = []] = await client.batch([
        ['hmget', name, ...fields],
        ['get', markName],
      ]);
      isWrongType = isWrongTypeError(recordError);
      if (recordError) throw recordError;
      const record = recordFrom(named(fields, values));
      if (record === undefined && markError) throw markError;
      return { record, mark: markError ? undefined : { name: markName, id: textFrom(mark) } };
    });
    try {
      return await proven(await reading, op === 'read_key' ? 'key' : 'other');
    } catch (error) {
      if (!isWrongType || !(error instanceof Error)) throw error;
      damaged.reportWrongType(name);
      throw new DamagedRecordError(error.message, { cause: error.cause });
    }
  };

  /**
   * Runs `work` on the background connection and resolves to its record. If there is none, reads the installation mark after
   * it, as {@link find} does.
   */
  const runProven = async <R>(
    op: StoreOp,
    work: () => Promise<readonly [lookedFor: string, record: R | undefined]>,
  ): Promise<R | undefined> => {
    const reading = background.run(op, async (): Promise<Reading<R>> => {
      const [lookedFor, record] = await work();
      if (record !== undefined) return { record, mark: undefined };
      const name = dataLoss.markNear(lookedFor);
      return { record, mark: { name, id: await redis.get(name) } };
    });
    return proven(await reading);
  };

  const readKey = async (sha256: string) =>
    keyRecordFrom(named(KEY_FIELDS, await redis.hmget(names.keyRecord(sha256), ...KEY_FIELDS)));

  /** Adds the key to its customer's set. Resolves to false when the customer does not exist. */
  const register = async ({ id, customer }: KeyRecord): Promise<boolean> =>
    (await registerKey(names.customerRecord(customer), names.customerKeys(customer), id)) === 1;

  const claimId = async (id: string, sha256: string): Promise<boolean> =>
    typeof (await index.claimId('create_key', id, sha256)) === 'string';

  const create = async (name: string, fields: Fields<string>): Promise<'created' | 'exists'> => {
    const set = Object.entries(fields).flatMap(([field, value]) => (value ? [field, value] : []));
    const reply = await createRecord(name, ...set);
    if (reply !== 0 && reply !== 1) throw new UnexpectedReplyError('create-record');
    dataLoss.sawRecord();
    return reply === 1 ? 'created' : 'exists';
  };

  /**
   * Changes a record only if the `checked` fields have not changed since the decision; otherwise reads it and decides
   * again. Resolves to the resulting record, undefined when there is none, or to the error of `decide`.
   */
  const update = async <Name extends string, R>(
    name: string,
    checked: readonly Name[],
    returned: readonly Name[],
    recordFrom: (fields: Fields<Name>) => R | undefined,
    decide: DecideChange<R>,
  ): Promise<R | Error | undefined> => {
    for (let attempt = 0; attempt < MAX_UPDATE_ATTEMPTS; attempt += 1) {
      const fields = named(checked, await redis.hmget(name, ...checked));
      const current = recordFrom(fields);
      if (current === undefined) return undefined;
      const changes = decide(current);
      if (changes instanceof Error) return changes;
      const values = await writeIfUnchanged(name, ...counted(fields), ...counted(changes), ...returned);
      if (values !== null) return recordFrom(named(returned, values));
    }
    throw new StoreUnavailableError(
      `the record changed during each of ${MAX_UPDATE_ATTEMPTS} attempts to update it: try again`,
    );
  };

  const changes = recordChanges(
    async (op, id, decide) => {
      const updated = await runProven(op, async () => {
        const name = names.customerRecord(id);
        const recordFrom = (fields: CustomerFields) => customerRecordFrom(id, fields);
        return [name, await update(name, ENFORCED_CUSTOMER_FIELDS, CUSTOMER_FIELDS, recordFrom, decide)];
      });
      directory.changed(id);
      return updated;
    },
    (op, keyId, decide) =>
      runProven(op, async () => {
        const sha256 = await redis.get(names.keyId(keyId));
        if (sha256 === null) return [names.keyId(keyId), undefined];
        const name = names.keyRecord(sha256);
        const recordFrom = (fields: KeyFields) => (fields.id === keyId ? keyRecordFrom(fields) : undefined);
        return [name, await update(name, ENFORCED_KEY_FIELDS, KEY_FIELDS, recordFrom, decide)];
      }),
  );

  return {
    ...lists,
    ...changes,
    findCustomers: directory.find,

    findKey: (sha256) =>
      find(connection, 'read_key', names.keyRecord(sha256), ENFORCED_KEY_FIELDS, (fields) => {
        damaged.checkKey(sha256, fields);
        return keyRecordFrom(fields);
      }),

    async findCustomer(id) {
      const name = names.customerRecord(id);
      const record = await find(connection, 'read_customer', name, ENFORCED_CUSTOMER_FIELDS, (fields) => {
        damaged.checkCustomer(id, fields);
        return customerRecordFrom(id, fields);
      });
      if (record === undefined) void damaged.checkUnbraced(connection.client, id);
      return record;
    },

    findCustomerRecord: (id) =>
      find(background, 'read_customer', names.customerRecord(id), CUSTOMER_FIELDS, (fields) =>
        customerRecordFrom(id, fields),
      ),

    async createCustomer(record) {
      const name = names.customerRecord(record.id);
      const outcome = await background.run('create_customer', () => create(name, customerFields(record)));
      directory.changed(record.id);
      return outcome;
    },

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
    createKey: (sha256, record) =>
      background.run('create_key', async () => {
        const indexName = names.keyId(record.id);
        if (!(await claimId(record.id, sha256))) return 'exists';
        if (!(await register(record))) {
          await redis.del(indexName);
          return 'no_customer';
        }

        const outcome = await create(names.keyRecord(sha256), keyFields(record));
        if (outcome === 'created') {
          if (!(await claimId(record.id, sha256))) {
            await redis.del(names.keyRecord(sha256));
            return 'exists';
          }
          if (await register(record)) return outcome;
          await deletion.deleteKeys('create_key', [{ id: record.id, sha256, record }]);
          return 'no_customer';
        }
        // Removes the entries only if the record has another id. With the same id, a concurrent attempt created it and
        // needs them.
        if ((await readKey(sha256))?.id !== record.id) {
          await redis.srem(names.customerKeys(record.customer), record.id);
          await redis.del(indexName);
        }
        return outcome;
      }),

    findKeyById: (keyId) =>
      runProven('read_key_id', async () => {
        const sha256 = await redis.get(names.keyId(keyId));
        if (sha256 === null) return [names.keyId(keyId), undefined];
        const record = await readKey(sha256);
        return [names.keyRecord(sha256), record?.id === keyId ? record : undefined];
      }),

    resetUsage: (customer, resetAt) =>
      runProven('reset_usage', async () => {
        const name = names.customerRecord(customer);
        const values = await resetUsage(
          names.window(customer),
          name,
          names.grants(customer),
          resetAt,
          ...CUSTOMER_FIELDS,
        );
        return [name, customerRecordFrom(customer, named(CUSTOMER_FIELDS, values))];
      }),

    async resetKeyWindow(customer, root) {
      const [window, record] = [names.window(customer, root), names.customerRecord(customer)];
      await background.run('reset_usage', () => resetUsage(window, record, names.grants(customer)));
    },

    resetPeriod: (customer, resetAt, period) =>
      runProven('reset_usage', async () => {
        const name = names.customerRecord(customer);
        const args = resetPeriodArguments(period, resetAt, CUSTOMER_FIELDS);
        const values = await resetPeriod(names.window(customer), name, ...args);
        return [name, customerRecordFrom(customer, named(CUSTOMER_FIELDS, values))];
      }),

    async deleteCustomer(id) {
      const op = 'delete_customer';
      const deletedKeys = await deletion.deleteCustomer(op, id);
      directory.changed(id);
      return deletedKeys ?? runProven<number>(op, async () => [names.customerRecord(id), undefined]);
    },

    async discardKey(keyId) {
      const op = 'discard_key';
      await deletion.deleteKeys(op, await index.read(op, [keyId]));
    },

    reindex: () => reindexKeys(index),

    inspect: () => inspectRecords(index),
  };
}

/** Returns fields as update-record.lua wants them: their number, then each with its value. An empty value means unset. */
function counted(fields: Fields<string>): (string | number)[] {
  const entries = Object.entries(fields).map(([field, value]) => [field, value ?? '']);
  return [entries.length, ...entries.flat()];
}
