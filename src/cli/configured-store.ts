import { systemClock } from '../clock.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';

/**
 * Does something to the store of a configuration file, past the gateways that use it. Rejects as `loadConfig` does. What
 * the store warns of goes to `warn`, by default standard error.
 */
export async function withConfiguredStore<Result>(
  file: string,
  work: (store: Store) => Promise<Result>,
  warn: (message: string) => void = (message) => void process.stderr.write(`${message}\n`),
): Promise<Result> {
  const config = await loadConfig(file, processEnvironment());
  const store = await openStore(config.store, {
    clock: systemClock,
    observer: { called() {}, up() {} },
    warn,
  });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
