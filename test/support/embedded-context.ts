import { type EmbeddedContext, inTransaction, openDatabase } from '../../src/store/embedded/database.ts';

/** Opens a store file for a part of the embedded store alone, with this time. Close `database` at the end. */
export function openEmbeddedContext(file: string, nowMs: () => number): EmbeddedContext {
  const database = openDatabase(file);
  return {
    database,
    run: async (_op, operation) => operation(),
    transact: async (_op, operation) => inTransaction(database, operation),
    clock: { nowMs },
  };
}
