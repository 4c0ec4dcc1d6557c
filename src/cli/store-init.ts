import { systemClock } from '../clock.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { openStore } from '../store/open-store.ts';

/** Declares the store to be meant as it is, after its data was lost on purpose or for good. */
export async function initialiseStore(file: string): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  const store = await openStore(config.store, {
    clock: systemClock,
    observer: { called() {}, up() {} },
    warn: (message) => process.stderr.write(`${message}\n`),
  });
  try {
    await store.initialise();
    process.stdout.write('The store counts as whole: gateways answer unknown keys with 401 again.\n');
    return 0;
  } finally {
    await store.close();
  }
}
