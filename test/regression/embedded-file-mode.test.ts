/**
 * The embedded store's file was made with mode 0644: every user of the machine could read the hashes of keys, the
 * customers and the audit, from its write-ahead log too.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openEmbeddedStore } from '../../src/store/embedded/embedded-store.ts';
import { RecordingObserver } from '../store/contract.ts';

test('the embedded store and its write-ahead log can be read by their owner only, also such as were made before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-mode-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'store.db');
  for (const _opening of ['new', 'made with another mode']) {
    const store = await openEmbeddedStore({ file, clock: systemClock, observer: new RecordingObserver() });
    await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
    const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
    await store.close();
    expect(Object.fromEntries(modes)).toEqual({ 'store.db': 0o600, 'store.db-wal': 0o600 });
    chmodSync(file, 0o644);
  }
});
