import { systemClock } from '../clock.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { openStore } from '../store/open-store.ts';
import type { ReindexReport } from '../store/store.ts';

/** Puts the indexes of keys in order after other programs wrote keys, and prints what was done. */
export async function reindexStore(file: string): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  const store = await openStore(config.store, {
    clock: systemClock,
    observer: { called() {}, up() {} },
    warn: (message) => process.stderr.write(`${message}\n`),
  });
  try {
    const report = await store.records.reindex();
    process.stdout.write(
      store.status().kind === 'embedded'
        ? 'The embedded store keeps its indexes itself: there is nothing to do.\n'
        : describe(report),
    );
    return 0;
  } finally {
    await store.close();
  }
}

function describe({ keys, entriesAdded, entriesDropped, unusable }: ReindexReport): string {
  const done = `${keys} keys are indexed: ${entriesAdded} entries added, ${entriesDropped} that led nowhere dropped.\n`;
  if (unusable.length === 0) return done;
  const names = unusable.map((name) => `  ${name}\n`).join('');
  return `${done}Not indexed, because they lack an id or a customer, have the id of another key, or a name that is no SHA-256 (at most 10 are named):\n${names}`;
}
