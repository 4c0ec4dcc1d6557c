import type { ReindexReport, Store } from '../store/store.ts';
import { withConfiguredStore } from './configured-store.ts';
import { EXIT } from './exit-status.ts';

/** Puts the indexes of keys in order after other programs wrote keys, and prints what was done. */
export async function reindexStore(file: string): Promise<number> {
  process.stdout.write(await withConfiguredStore(file, reindex));
  return EXIT.success;
}

async function reindex(store: Store): Promise<string> {
  const report = await store.records.reindex();
  return store.status().kind === 'embedded'
    ? 'The embedded store keeps its indexes itself: there is nothing to do.\n'
    : describe(report);
}

function describe({ keys, entriesAdded, entriesDropped, unusable }: ReindexReport): string {
  const done = `${keys} keys are indexed: ${entriesAdded} entries added, ${entriesDropped} that led nowhere dropped.\n`;
  if (unusable.length === 0) return done;
  const names = unusable.map((name) => `  ${name}\n`).join('');
  return `${done}Not indexed, because they lack an id or a customer, have the id of another key, or a name that is no SHA-256 (at most 10 are named):\n${names}`;
}
