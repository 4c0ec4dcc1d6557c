import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { embeddedRecords } from '../../src/store/embedded/records.ts';
import { openEmbeddedContext } from '../support/embedded-context.ts';

test('an inspection reads only where a failure of the database is reported as that of the store', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-inspection-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const context = openEmbeddedContext(join(folder, 'store.db'), Date.now);
  const all = embeddedRecords(context, () => undefined);
  await all.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await all.createKey('a'.repeat(64), { id: 'key_1', customer: 'acme' });
  // After each operation of the store the database is gone: any other read throws.
  const run: typeof context.run = async (_op, operation) => {
    const result = operation();
    context.database.close();
    return result;
  };
  const inspected = embeddedRecords({ ...context, run }, () => undefined)
    .inspect()
    [Symbol.asyncIterator]();
  expect((await inspected.next()).value).toMatchObject([
    { kind: 'key', record: 'api_key key_1', customerExists: true },
  ]);
});
