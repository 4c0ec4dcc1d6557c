/**
 * Repairs the indexes of keys. First adds the missing entries of every record, then deletes entries without a matching
 * record, and last uses of deleted keys. Each step is short, so that Redis serves gateways in between.
 */
import {
  BAD_NAME,
  DAMAGED_INDEX,
  duplicateId,
  type FaultCode,
  keyFaults,
  type RecordFault,
  wrongType,
} from '../../record-faults.ts';
import { keyRecordFrom } from '../../record-fields.ts';
import type { KeyRecord, ReindexReport } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { Command } from '../connection/client.ts';
import { isEmpty, pipelined } from '../connection/replies.ts';
import {
  CUSTOMER_KEYS,
  customerKeysName,
  isSha256,
  KEY_IDS,
  KEY_RECORDS,
  keyIdName,
  keyRecordName,
  keyUsesName,
  type NameFamily,
  shownKeyRecordName,
} from '../protocol/key-names.ts';
import type { KeyIndex } from './key-index.ts';
import { deletedOf, scanAll } from './name-scan.ts';

const OP = 'reindex';
const SCAN_COUNT = 1000;
const MOST_EXAMPLES = 10;

interface FoundKey {
  readonly sha256: string;
  readonly record: KeyRecord;
}

export class Reindexing {
  readonly #connection: RedisChannel;
  readonly #index: KeyIndex;
  readonly #prefix: string;
  readonly #passedOver: Partial<Record<FaultCode, number>> = {};
  readonly #examples: { readonly record: string; readonly fault: RecordFault }[] = [];
  #keys = 0;
  #entriesAdded = 0;
  #entriesDropped = 0;

  constructor(connection: RedisChannel, index: KeyIndex, keyPrefix: string) {
    this.#connection = connection;
    this.#index = index;
    this.#prefix = keyPrefix;
  }

  async run(): Promise<ReindexReport> {
    for await (const sha256s of this.#everyNameOf(KEY_RECORDS)) await this.#addEntries(sha256s);
    for await (const ids of this.#everyNameOf(KEY_IDS)) await this.#dropStrayIds(ids);
    for await (const customers of this.#everyNameOf(CUSTOMER_KEYS, 'set')) {
      for (const customer of customers) await this.#dropStrayMembers(customer);
    }
    await this.#dropStrayUses();
    return {
      keys: this.#keys,
      entriesAdded: this.#entriesAdded,
      entriesDropped: this.#entriesDropped,
      passedOver: this.#passedOver,
      examples: this.#examples,
    };
  }

  async #addEntries(sha256s: readonly string[]): Promise<void> {
    const read = await this.#index.readFields(OP, sha256s);
    const suspects = sha256s.filter((_, i) => isEmpty(read[i])).map((sha256) => keyRecordName(this.#prefix, sha256));
    const deleted = await deletedOf(this.#connection, OP, suspects);
    const found: FoundKey[] = [];
    for (const [i, sha256] of sha256s.entries()) {
      const fields = read[i];
      const record = fields && keyRecordFrom(fields);
      if (deleted.has(keyRecordName(this.#prefix, sha256))) continue;
      if (!isSha256(sha256)) this.#passOver(sha256, BAD_NAME);
      else if (fields === undefined) this.#passOver(sha256, wrongType('key'));
      else if (record === undefined) this.#passOver(sha256, keyFaults(fields)[0]);
      else found.push({ sha256, record });
    }
    await this.#addToCustomers(await this.#addIds(found));
  }

  /** Adds the entries by id. Returns the keys whose entry now points to them. */
  async #addIds(found: readonly FoundKey[]): Promise<readonly FoundKey[]> {
    const replies = await this.#pipelined(
      found.map(({ sha256, record }) => ['setnx', keyIdName(this.#prefix, record.id), sha256]),
    );
    const indexed = found.filter((_, i) => replies[i] === 1);
    this.#entriesAdded += indexed.length;
    const others = found.filter((_, i) => replies[i] !== 1);
    const entries = await this.#index.read(
      OP,
      others.map(({ record }) => record.id),
    );
    for (const [i, key] of others.entries()) {
      const { sha256: held, record: holder } = entries[i] ?? {};
      if (held === key.sha256) {
        indexed.push(key);
      } else if (held !== undefined && holder === undefined && (await this.#redirect(key, held))) {
        this.#entriesAdded += 1;
        indexed.push(key);
      } else {
        const isOther = held !== undefined && holder !== undefined;
        const fault = isOther ? duplicateId(shownKeyRecordName(this.#prefix, held)) : DAMAGED_INDEX;
        this.#passOver(key.sha256, fault);
      }
    }
    return indexed;
  }

  async #addToCustomers(found: readonly FoundKey[]): Promise<void> {
    const replies = await this.#pipelined(
      found.map(({ record }) => ['sadd', customerKeysName(this.#prefix, record.customer), record.id]),
    );
    for (const [i, { sha256 }] of found.entries()) {
      if (replies[i] === 1) this.#entriesAdded += 1;
      if (replies[i] === undefined) this.#passOver(sha256, DAMAGED_INDEX);
      else this.#keys += 1;
    }
  }

  async #dropStrayIds(ids: readonly string[]): Promise<void> {
    const stray = (await this.#index.read(OP, ids)).filter(({ record }) => record === undefined);
    this.#entriesDropped += await this.#index.dropIds(OP, stray);
  }

  async #dropStrayMembers(customer: string): Promise<void> {
    for await (const ids of this.#index.idsOf(OP, customer)) {
      const stray = (await this.#index.read(OP, ids)).filter(({ record }) => record?.customer !== customer);
      this.#entriesDropped += await this.#index.dropFromCustomer(
        OP,
        customer,
        stray.map(({ id }) => id),
      );
    }
  }

  async #dropStrayUses(): Promise<void> {
    const name = keyUsesName(this.#prefix);
    let cursor = '0';
    do {
      const [next, membersAndScores] = await this.#connection.run(OP, (redis) =>
        redis.zscan(name, cursor, 'COUNT', SCAN_COUNT),
      );
      const ids = membersAndScores.filter((_, i) => i % 2 === 0);
      const stray = (await this.#index.read(OP, ids)).filter(({ record }) => record === undefined);
      const replies = await this.#pipelined(stray.map(({ id }) => ['zrem', name, id]));
      this.#entriesDropped += replies.filter((reply) => reply === 1).length;
      cursor = next;
    } while (cursor !== '0');
  }

  async *#everyNameOf({ pattern, parse }: NameFamily, type?: 'set'): AsyncGenerator<string[]> {
    for await (const names of scanAll(this.#connection, OP, pattern(this.#prefix), type)) {
      yield names.flatMap((name) => parse(this.#prefix, name) ?? []);
    }
  }

  #redirect({ sha256, record }: FoundKey, held: string): Promise<boolean> {
    return this.#index.redirect(OP, record.id, held, sha256);
  }

  #pipelined(commands: readonly Command[]): Promise<unknown[]> {
    return this.#connection.run(OP, (redis) => pipelined(redis, commands));
  }

  #passOver(sha256: string, fault: RecordFault | undefined): void {
    if (fault === undefined) return;
    this.#passedOver[fault.code] = (this.#passedOver[fault.code] ?? 0) + 1;
    const record = shownKeyRecordName(this.#prefix, sha256);
    if (this.#examples.length < MOST_EXAMPLES) this.#examples.push({ record, fault });
  }
}
