import { type EmbeddedContext, inTransaction, openDatabase } from '../../src/store/embedded/database.ts';
import { Sql } from '../../src/store/embedded/sql.ts';

/** Opens a store file for a part of the embedded store alone, with this time. Close `database` at the end. */
export function openEmbeddedContext(file: string, nowMs: () => number): EmbeddedContext {
  const database = openDatabase(file);
  return {
    database,
    sql: new Sql(database),
    run: async (_op, operation) => operation(),
    transact: async (_op, operation) => inTransaction(database, operation),
    clock: { nowMs },
  };
}
