import { systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
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
  work: (store: Store, config: Config) => Promise<Result>,
  { warn = warnOnStandardError, readOnly = false }: { warn?: (message: string) => void; readOnly?: boolean } = {},
): Promise<Result> {
  const config = await loadConfig(file, processEnvironment());
  const store = await openStore(config.store, {
    clock: systemClock,
    observer: { called() {}, up() {} },
    warn,
    readOnly,
  });
  try {
    return await work(store, config);
  } finally {
    await store.close();
  }
}

function warnOnStandardError(message: string): void {
  process.stderr.write(`${message}\n`);
}
