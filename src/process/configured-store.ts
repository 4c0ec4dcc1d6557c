import { systemClock } from '../base/clock.ts';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { openStore } from '../store/open/open-store.ts';
import type { Store } from '../store/store.ts';

interface Options {
  /** Receives warnings of the store; by default, they go to standard error. */
  readonly warn?: (message: string) => void;
  readonly readOnly?: boolean;
}

/** Nobody waits for a request here: a slow moment of the store must not end a command in the middle of its work. */
const COMMAND_TIMEOUT_MS = 5000;

/** Opens the store of a config file, and runs `work` on it without a gateway. Rejects like `loadConfig`. */
export async function withConfiguredStore<Result>(
  file: string,
  work: (store: Store, config: Config) => Promise<Result>,
  options: Options = {},
): Promise<Result> {
  const config = await loadConfig(file, processEnvironment());
  const timeoutMs = Math.max(config.store.timeoutMs, COMMAND_TIMEOUT_MS);
  return withStore({ ...config, store: { ...config.store, timeoutMs } }, (store) => work(store, config), options);
}

/** Opens the store of a config, and runs `work` on it without a gateway. */
export async function withStore<Result>(
  config: Config,
  work: (store: Store) => Promise<Result>,
  { warn = (message) => process.stderr.write(`${message}\n`), readOnly = false }: Options = {},
): Promise<Result> {
  const store = await openStore(
    { ...config.store, usage: config.usage },
    {
      clock: systemClock,
      observer: { called() {}, up() {} },
      warn,
      readOnly,
    },
  );
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
