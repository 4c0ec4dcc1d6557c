import { printable } from '../admin-client/printable.ts';
import { withConfiguredStore } from '../process/configured-store.ts';
import type { ReindexReport, Store } from '../store/store.ts';
import { EXIT } from './exit-status.ts';
import { describeCounts } from './store-check.ts';

/** Accepts the store's current content as complete, after its data was lost on purpose or for good. */
export async function initialiseStore(file: string): Promise<number> {
  await withConfiguredStore(file, (store) => store.initialise(), { warn: () => undefined });
  process.stdout.write('The content of the store is accepted as complete: unknown keys get 401 again.\n');
  return EXIT.success;
}

/** Repairs the key indexes after other programs wrote keys, and prints what was repaired. */
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

function describe({ keys, entriesAdded, entriesDropped, passedOver, examples }: ReindexReport): string {
  const done = `${keys} keys are indexed: ${entriesAdded} entries added, ${entriesDropped} without a key deleted.\n`;
  if (examples.length === 0) return done;
  const lines = examples.map(({ record, fault }) => `  ${printable(`${record} ${fault.text}`)}\n`).join('');
  const more = 'at most 10 are listed; "tollgate store check" lists all';
  return `${done}Not indexed: ${describeCounts(passedOver)} (${more}):\n${lines}`;
}
