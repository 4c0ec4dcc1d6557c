/**
 * Files of the embedded store, with the current schema and without records. Applying all migrations takes 10 ms, and
 * most tests need a store of their own; test/store/embedded*.test.ts show that the program creates the file itself.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../src/store/embedded/database.ts';

const OWNER_ONLY = 0o600;

let content: Buffer | undefined;

/** Writes an empty store into a new file of the folder. Returns the file's URL. */
export function createStoreFile(folder: string, name = 'store.sqlite'): string {
  content ??= migratedFile();
  const file = join(folder, name);
  writeFileSync(file, content, { mode: OWNER_ONLY, flag: 'wx' });
  return `sqlite:${file}`;
}

function migratedFile(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-schema-'));
  try {
    const file = join(folder, 'store.sqlite');
    openDatabase(file).close();
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
