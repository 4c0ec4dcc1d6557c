/**
 * The files of a site, built at their first use: a gateway whose console nobody opens does not pay for it. In a thread,
 * because building takes half a second, in which no request could be served.
 */
import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { PageFiles, Site } from './build-files.ts';

/** `.ts` in a checkout, where Node.js strips the types; `.js` in the built package. */
const ENTRY = new URL(`./build-thread${extname(import.meta.filename)}`, import.meta.url);

/** Returns a function that builds the files once. It rejects if they cannot be built, and tries again when called. */
export function lazyPageFiles(site: Site): () => Promise<PageFiles> {
  let built: Promise<PageFiles> | undefined;
  return () => {
    built ??= buildInThread(site).catch((error: unknown) => {
      built = undefined;
      throw error;
    });
    return built;
  };
}

async function buildInThread(site: Site): Promise<PageFiles> {
  // Stripping types is still announced as experimental; the process itself does nothing else from its start.
  const execArgv = ['--disable-warning=ExperimentalWarning'];
  const thread = new Worker(ENTRY, { env: {}, execArgv, workerData: site });
  try {
    const [files] = await once(thread, 'message');
    return files;
  } finally {
    await thread.terminate();
  }
}
