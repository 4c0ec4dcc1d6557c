/**
 * Lists of keys and customers. A list implies that other records do not exist, so listing fails when the store lost its
 * data or evicted keys: see installed.ts.
 */

import { mostSorted, oldestFirst, positionIn, sortedPage } from '../../customer-key-pages.ts';
import { CUSTOMER_FIELDS } from '../../record-fields.ts';
import { isCustomerId } from '../../record-ids.ts';
import type { CustomerRecord, KeyRecord, Page, StoreOp } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { customerRecordFromReply, pipelined } from '../connection/replies.ts';
import type { Installed } from '../installation/installed.ts';
import { CUSTOMER_RECORDS, customerRecordName, isSha256, KEY_RECORDS } from '../protocol/key-names.ts';
import type { KeyIndex } from './key-index.ts';
import { scanPage } from './name-scan.ts';

export interface RecordListsOptions {
  readonly connection: RedisChannel;
  readonly index: KeyIndex;
  readonly installed: Installed;
  readonly keyPrefix: string;
}

export class RecordLists {
  readonly #connection: RedisChannel;
  readonly #index: KeyIndex;
  readonly #installed: Installed;
  readonly #prefix: string;

  constructor({ connection, index, installed, keyPrefix }: RecordListsOptions) {
    this.#connection = connection;
    this.#index = index;
    this.#installed = installed;
    this.#prefix = keyPrefix;
  }

  async customers(cursor: string | undefined, limit: number): Promise<Page<CustomerRecord>> {
    const op = 'list_customers';
    const { names, next } = await scanPage(this.#connection, op, CUSTOMER_RECORDS.pattern(this.#prefix), cursor, limit);
    const ids = names.flatMap((name) => CUSTOMER_RECORDS.parse(this.#prefix, name) ?? []).filter(isCustomerId);
    const items = await this.#connection.run(op, async (redis) => {
      const replies = await pipelined(
        redis,
        ids.map((id) => ['hmget', customerRecordName(this.#prefix, id), ...CUSTOMER_FIELDS]),
      );
      return ids.flatMap((id, index) => customerRecordFromReply(id, replies[index]) ?? []);
    });
    await this.#requireWhole(op);
    return { items, next };
  }

  async keys(cursor: string | undefined, limit: number): Promise<Page<KeyRecord>> {
    const op = 'list_keys';
    const { names, next } = await scanPage(this.#connection, op, KEY_RECORDS.pattern(this.#prefix), cursor, limit);
    const sha256s = names.flatMap((name) => KEY_RECORDS.parse(this.#prefix, name) ?? []).filter(isSha256);
    const records = await this.#index.readRecords(op, sha256s);
    await this.#requireWhole(op);
    return { items: records.filter((record) => record !== undefined), next };
  }

  async keysOf(customer: string, cursor: string | undefined, limit: number): Promise<Page<KeyRecord>> {
    const op = 'list_customer_keys';
    const position = cursor === undefined ? undefined : positionIn(cursor);
    // Any other cursor belongs to a list too long to sort as a whole. A sorted list that has grown too long is listed
    // again from its start.
    const scanCursor = position === undefined ? cursor : undefined;
    if (scanCursor === undefined && (await this.#index.countOf(op, customer)) <= mostSorted(limit)) {
      const ids = new Set<string>();
      for await (const piece of this.#index.idsOf(op, customer)) for (const id of piece) ids.add(id);
      const records = await this.#recordsOf(op, customer, [...ids]);
      await this.#requireWhole(op);
      return sortedPage(records, position, limit);
    }
    const { names: ids, next } = await this.#index.pageOfIds(op, customer, scanCursor, limit);
    const items = oldestFirst(await this.#recordsOf(op, customer, ids));
    await this.#requireWhole(op);
    return { items, next };
  }

  async #recordsOf(op: StoreOp, customer: string, ids: readonly string[]): Promise<KeyRecord[]> {
    const entries = await this.#index.read(op, ids);
    return entries.flatMap(({ record }) => (record?.customer === customer ? [record] : []));
  }

  /** Reads the marks after the last read of records, so that records lost before it do not count as never created. */
  async #requireWhole(op: StoreOp): Promise<void> {
    await this.#connection.run(op, (redis) => this.#installed.lookOn(redis));
    await this.#installed.requireProof('other');
  }
}
