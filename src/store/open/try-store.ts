/** Checks whether a gateway could use a store, without writing anything to it. */
import { constants } from 'node:fs';
import { access, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, systemClock } from '../../base/clock.ts';
import { parseStoreUrl } from '../../formats/store-address.ts';
import { tryRedis } from '../redis/try-redis.ts';
import type { StoreFinding } from '../store.ts';
import type { StoreSettings } from './open-store.ts';

const SQLITE_HEADER = 'SQLite format 3\0';

/** Tries the store that `settings.url` names. Compares Redis' clock with `clock`. Never rejects. */
export async function tryStore(settings: StoreSettings, clock: Clock = systemClock): Promise<readonly StoreFinding[]> {
  const address = parseStoreUrl(settings.url);
  switch (address.kind) {
    case 'sqlite':
      return [await checkFile(address.file)];
    case 'invalid':
      return [{ outcome: 'error', text: address.fault }];
    default:
      return await tryRedis(address, { ...settings, clock });
  }
}

/** Reads the file's header directly: SQLite would create files beside it and might block on a running gateway. */
async function checkFile(file: string): Promise<StoreFinding> {
  try {
    await using handle = await open(file, constants.O_RDWR);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(SQLITE_HEADER.length), 0, SQLITE_HEADER.length, 0);
    const isSqlite = bytesRead === 0 || buffer.toString('latin1') === SQLITE_HEADER;
    if (isSqlite) return { outcome: 'ok', text: 'the file can be read and written' };
    return { outcome: 'error', text: 'the file is not a SQLite database' };
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') return { outcome: 'error', text: messageOf(error) };
  }
  return await checkFolder(dirname(file));
}

async function checkFolder(folder: string): Promise<StoreFinding> {
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    return { outcome: 'ok', text: 'the file does not exist yet, and can be created' };
  } catch (error) {
    const parent = dirname(folder);
    // The gateway creates missing folders at startup.
    if (codeOf(error) === 'ENOENT' && parent !== folder) return await checkFolder(parent);
    return { outcome: 'error', text: `the file cannot be created: ${messageOf(error)}` };
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
