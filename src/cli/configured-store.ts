import { systemClock } from '../base/clock.ts';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { openStore } from '../store/open/open-store.ts';
import type { Store } from '../store/store.ts';

/**
 * Opens the store of a config file and runs `work` on it directly, without a gateway. Rejects like `loadConfig`.
 * Warnings of the store go to `warn`, by default to standard error.
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
