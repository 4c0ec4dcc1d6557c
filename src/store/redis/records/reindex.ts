/**
 * Repairs the indexes of keys. First adds the missing entries of every record, then deletes entries without a matching
 * record, last uses of deleted keys, and indexes of former versions. Each step is short, so that Redis serves gateways in between.
 */
import { type FaultCode, keyFaults, type RecordFault, recordFault, wrongType } from '../../record-faults.ts';
import { type KeyRecord, keyRecordFrom } from '../../record-fields.ts';
import type { ReindexReport } from '../../store.ts';
import type { Command } from '../connection/client.ts';
import { scanSteps, sendAll } from '../connection/replies.ts';
import { isSha256 } from '../protocol/key-names.ts';
import type { KeyIndex, StoredKey } from './key-index.ts';
import { scanAll } from './name-scan.ts';

const OP = 'reindex';
const SCAN_COUNT = 1000;
const MAX_EXAMPLES = 10;

interface FoundKey {
  readonly sha256: string;
  readonly record: KeyRecord;
}

export async function reindexKeys(index: KeyIndex): Promise<ReindexReport> {
  const { connection, names } = index;
  const passedOver: Partial<Record<FaultCode, number>> = {};
  const examples: { readonly record: string; readonly fault: RecordFault }[] = [];
  let keys = 0;
  let entriesAdded = 0;
  let entriesDropped = 0;

  const send = (commands: readonly Command[]) => sendAll(connection, OP, commands);

  const passOver = (sha256: string, fault: RecordFault | undefined) => {
    if (fault === undefined) return;
    passedOver[fault.code] = (passedOver[fault.code] ?? 0) + 1;
    const record = names.shownKeyRecord(sha256);
    if (examples.length < MAX_EXAMPLES) examples.push({ record, fault });
  };

  const addEntries = async (stored: readonly StoredKey[]) => {
    const found: FoundKey[] = [];
    for (const { sha256, fields } of stored) {
      const record = fields && keyRecordFrom(fields);
      if (!isSha256(sha256)) passOver(sha256, recordFault('bad_name'));
      else if (fields === undefined) passOver(sha256, wrongType('key'));
      else if (record === undefined) passOver(sha256, keyFaults(fields)[0]);
      else found.push({ sha256, record });
    }
    await addToCustomers(await addIds(found));
  };

  /** Adds the entries by id. Returns the keys whose entry now points to them. */
  const addIds = async (found: readonly FoundKey[]): Promise<readonly FoundKey[]> => {
    const replies = await send(found.map(({ sha256, record }) => ['setnx', names.keyId(record.id), sha256]));
    const indexed = found.filter((_, i) => replies[i] === 1);
    entriesAdded += indexed.length;
    const others = found.filter((_, i) => replies[i] !== 1);
    const entries = await index.read(
      OP,
      others.map(({ record }) => record.id),
    );
    for (const [i, key] of others.entries()) {
      const { sha256: other, record: otherRecord } = entries[i] ?? {};
      if (other === key.sha256) {
        indexed.push(key);
      } else if (other === undefined) {
        passOver(key.sha256, recordFault('damaged_index'));
      } else if (otherRecord !== undefined) {
        passOver(key.sha256, recordFault('duplicate_id', names.shownKeyRecord(other)));
      } else if (await index.redirect(OP, key.record.id, other, key.sha256)) {
        entriesAdded += 1;
        indexed.push(key);
      } else {
        passOver(key.sha256, recordFault('damaged_index'));
      }
    }
    return indexed;
  };

  const addToCustomers = async (found: readonly FoundKey[]) => {
    const replies = await send(found.map(({ record }) => ['sadd', names.customerKeys(record.customer), record.id]));
    for (const [i, { sha256 }] of found.entries()) {
      if (replies[i] === 1) entriesAdded += 1;
      if (replies[i] === undefined) passOver(sha256, recordFault('damaged_index'));
      else keys += 1;
    }
  };

  for await (const stored of index.everyKey(OP)) await addEntries(stored);
  for await (const found of scanAll(connection, OP, names.keyIds.pattern)) {
    const ids = found.flatMap((name) => names.keyIds.parse(name) ?? []);
    entriesDropped += await index.dropIds(OP, await index.read(OP, ids));
  }
  for await (const found of scanAll(connection, OP, names.customerKeySets.pattern, 'set')) {
    for (const customer of found.flatMap((name) => names.customerKeySets.parse(name) ?? [])) {
      for await (const ids of index.idsOf(OP, customer)) {
        entriesDropped += await index.dropFromCustomer(OP, customer, await index.read(OP, ids));
      }
    }
  }
  const uses = names.keyUses;
  const scanUses = async (cursor: string): Promise<[string, string[]]> => {
    const [next, idsAndScores] = await connection.run(OP, (redis) => redis.zscan(uses, cursor, 'COUNT', SCAN_COUNT));
    return [next, idsAndScores.filter((_, i) => i % 2 === 0)];
  };
  for await (const ids of scanSteps(scanUses)) {
    const stray = (await index.read(OP, ids)).filter(({ record }) => record === undefined);
    const replies = await send(stray.map(({ id }) => ['zrem', uses, id]));
    entriesDropped += replies.filter((reply) => reply === 1).length;
  }
  for (const name of names.formerIndexes) {
    // In steps: one DEL of millions of entries would hold up Redis.
    let deleted: unknown;
    do [deleted] = await send([['zremrangebyrank', name, 0, SCAN_COUNT - 1]]);
    while (typeof deleted === 'number' && deleted > 0);
  }
  return { keys, entriesAdded, entriesDropped, passedOver, examples };
}
