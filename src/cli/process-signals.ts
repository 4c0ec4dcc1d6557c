import { type Environment, processEnvironment } from '../config/environment.ts';

/**
 * Set by npm, and by bin/prepare-node.js. Both forward signals to the gateway, so a signal to the whole process group
 * arrives twice within {@link COPY_WITHIN_MS}.
 */
const FORWARDERS = ['npm_lifecycle_event', 'TOLLGATE_SIGNALS_FORWARDED'];
const COPY_WITHIN_MS = 1000;

/**
 * Handles the signals of a gateway. Call it before anything else is loaded: the kernel discards a signal to process 1 of a
 * container that has no handler, and the gateway would start after it was told to stop. Returns what the first SIGTERM or
 * SIGINT aborts. A second one ends the process at once, for users at a terminal. SIGHUP does nothing here: another
 * listener reloads the configuration. SIGUSR1 does nothing.
 */
export function receiveSignals(environment: Environment = processEnvironment()): AbortSignal {
  const stopping = new AbortController();
  let firstMs: number | undefined;
  const receive = () => {
    const nowMs = performance.now();
    firstMs ??= nowMs;
    const isCopy = FORWARDERS.some((name) => name in environment) && nowMs - firstMs < COPY_WITHIN_MS;
    if (!stopping.signal.aborted) stopping.abort();
    else if (!isCopy) process.exit(1);
  };
  process.on('SIGTERM', receive).on('SIGINT', receive);
  process.on('SIGHUP', () => {});
  // Without a listener, Node.js opens its inspector, which runs any code. --disable-sigusr1 works from the first moment on.
  process.on('SIGUSR1', () => {});
  return stopping.signal;
}
