/**
 * The files of the console, built at their first use: a gateway whose console nobody opens does not pay for it. In a
 * thread, because building takes half a second, in which no request could be served.
 */
import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ConsoleFiles } from './build-files.ts';

/** `.ts` in a checkout, where Node.js strips the types; `.js` in the built package. */
const ENTRY = new URL(`./build-thread${extname(import.meta.filename)}`, import.meta.url);

/** Returns a function that builds the files once. It rejects if they cannot be built, and tries again when called. */
export function lazyConsoleFiles(): () => Promise<ConsoleFiles> {
  let built: Promise<ConsoleFiles> | undefined;
  return () => {
    built ??= buildInThread().catch((error: unknown) => {
      built = undefined;
      throw error;
    });
    return built;
  };
}

async function buildInThread(): Promise<ConsoleFiles> {
  // Stripping types is still announced as experimental; the process itself does nothing else from its start.
  const execArgv = ['--disable-warning=ExperimentalWarning'];
  const thread = new Worker(ENTRY, { env: {}, execArgv });
  try {
    const [files] = await once(thread, 'message');
    return files;
  } finally {
    await thread.terminate();
  }
}
