import { systemClock } from '../clock.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';

/** Does something to the store of a configuration file, past the gateways that use it. Rejects as `loadConfig` does. */
export async function withConfiguredStore<Result>(
  file: string,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const config = await loadConfig(file, processEnvironment());
  const store = await openStore(config.store, {
    clock: systemClock,
    observer: { called() {}, up() {} },
    warn: (message) => process.stderr.write(`${message}\n`),
  });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
