/**
 * Repairs the indexes of keys. First adds the missing entries of every record, then deletes entries without a matching
 * record, last uses of deleted keys, and indexes of former versions. Each step is short, so that Redis serves gateways in between.
 */
import { type FaultCode, type RecordFault, recordFault } from '../../record-faults.ts';
import type { ReindexReport } from '../../records.ts';
import { inPieces, sendAll } from '../connection/channel.ts';
import { type Command, scanSteps } from '../connection/client.ts';
import { everyKey, type StoredKey } from './inspection.ts';
import type { KeyIndex } from './key-index.ts';
import { scanAll } from './name-scan.ts';

const OP = 'reindex';
const SCAN_COUNT = 1000;
const MAX_EXAMPLES = 10;

export async function reindexKeys(index: KeyIndex): Promise<ReindexReport> {
  const { connection, names } = index;
  const passedOver: Partial<Record<FaultCode, number>> = {};
  const examples: { readonly record: string; readonly fault: RecordFault }[] = [];
  let keys = 0;
  let entriesAdded = 0;
  let entriesDropped = 0;

  const send = (commands: readonly Command[]) => sendAll(connection, OP, commands);

  /** Resolves to the reason why a key cannot be indexed. */
  const addEntries = async ({ sha256, key, faults }: StoredKey): Promise<RecordFault | undefined> => {
    if (key === undefined) return faults[0];
    const claim = await connection.run(OP, () => index.claimId(OP, key.id, sha256));
    if (typeof claim === 'object') return claim;
    if (claim === 'added') entriesAdded += 1;
    const [added] = await send([['sadd', names.customerKeys(key.customer), key.id]]);
    if (added === undefined) return recordFault('damaged_index');
    if (added === 1) entriesAdded += 1;
    keys += 1;
    return undefined;
  };

  for await (const stored of everyKey(index, OP)) {
    const faults = await inPieces(stored, (piece) => Promise.all(piece.map(addEntries)));
    for (const [i, { record }] of stored.entries()) {
      const fault = faults[i];
      if (fault === undefined) continue;
      passedOver[fault.code] = (passedOver[fault.code] ?? 0) + 1;
      if (examples.length < MAX_EXAMPLES) examples.push({ record, fault });
    }
  }
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
