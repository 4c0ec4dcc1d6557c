/**
 * The index of keys by their expiry. Keys without one have no entry. An entry contains a digest of the record's name and
 * the name: only the digest may be in cursors, because the name is the key's SHA-256.
 */
import { hash } from 'node:crypto';
import { expiresWithin, readableExpiryMs } from '../../key-expiry.ts';
import type { KeyRecord } from '../../record-fields.ts';
import type { RecordStore } from '../../store.ts';
import { keyIndexName } from '../protocol/key-names.ts';
import { type IndexParts, SearchIndex } from './search-index.ts';

export interface FoundKey {
  readonly sha256: string;
  readonly record: KeyRecord;
}

/** `read` reads by SHA-256. */
export function keyExpiryIndex({ connection, prefix, read, scan, pushed }: IndexParts<FoundKey>) {
  const index = new SearchIndex<FoundKey>({
    connection,
    name: keyIndexName(prefix),
    op: 'list_keys',
    isPushed: () => pushed.connected,
    idOf: ({ sha256 }) => idOf(sha256),
    shownIdLength: DIGEST_LENGTH,
    termsOf({ record }) {
      const expiryMs = readableExpiryMs(record);
      return expiryMs === undefined ? [] : [expiryTerm(expiryMs)];
    },
    read: (op, ids) =>
      read(
        op,
        ids.map((id) => id.slice(DIGEST_LENGTH)),
      ),
    scan,
  });
  pushed.subscribe((change) => {
    if (change.kind !== 'customer') index.changed(change.kind === 'key' ? idOf(change.sha256) : undefined);
  });

  const find: RecordStore['findExpiringKeys'] = async (range, cursor, limit) => {
    const ranges = [{ from: expiryTerm(range.fromMs), to: expiryTerm(range.toMs) }];
    const matches = ({ record }: FoundKey) => expiresWithin(record, range);
    const { items, next } = await index.find({ ranges, matches }, cursor, limit);
    return { items: items.map(({ record }) => record), next };
  };
  return { index, find };
}

const DIGEST_LENGTH = 16;

function idOf(sha256: string): string {
  return hash('sha256', sha256, 'hex').slice(0, DIGEST_LENGTH) + sha256;
}

/** In the order of time. Years beyond four digits do not sort, and are no expiries. */
function expiryTerm(ms: number): string {
  return new Date(Math.min(ms, MAX_EXPIRY_MS)).toISOString();
}

const MAX_EXPIRY_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
