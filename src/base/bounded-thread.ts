import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

const YOUNG_GENERATION_MB = 16;

export interface ThreadBounds {
  /** CPU time, which a busy machine does not use up. */
  readonly cpuMs: number;
  readonly heapMebibytes: number;
  /** Terminates the thread; the promise then rejects with an AbortError. */
  readonly signal?: AbortSignal;
}

/** A job took too long or too much memory. The message completes a sentence about its input. */
export class ThreadBoundError extends Error {
  override readonly name = 'ThreadBoundError';
}

/** Runs a module in a thread until it posts a message, and returns that. Rejects with ThreadBoundError. */
export async function runInThread(
  entry: URL,
  workerData: unknown,
  { signal, ...bounds }: ThreadBounds,
): Promise<unknown> {
  const ended = new AbortController();
  const deadline = new AbortController();
  // Threads do not inherit the cache of compiled modules, which halves their start.
  const cache = getCompileCacheDir();
  const thread = new Worker(entry, {
    workerData,
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: bounds.heapMebibytes, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  // An `error` event without a listener ends the process, even while the thread is being terminated.
  thread.on('error', () => {});
  // Rejects when the thread has ended.
  whenUsedUp(thread, bounds.cpuMs, ended.signal).then(
    () => deadline.abort(),
    () => {},
  );
  try {
    const [message] = await once(thread, 'message', {
      signal: signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal,
    });
    return message;
  } catch (error) {
    if (deadline.signal.aborted) {
      throw new ThreadBoundError(`takes longer than ${bounds.cpuMs / 1000} s to parse; make it smaller`);
    }
    const isOutOfMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    if (!isOutOfMemory) throw error;
    throw new ThreadBoundError(`takes more than ${bounds.heapMebibytes} MiB of memory to parse; make it smaller`);
  } finally {
    ended.abort();
    await thread.terminate();
  }
}

/** Resolves when a thread has used an amount of CPU time. */
async function whenUsedUp(thread: Worker, cpuMs: number, signal: AbortSignal): Promise<void> {
  // Until then, it has no CPU time to tell.
  await once(thread, 'online', { signal });
  for (let leftMs = cpuMs; leftMs > 0; ) {
    await delay(leftMs, undefined, { signal });
    const { user, system } = await thread.cpuUsage();
    leftMs = cpuMs - (user + system) / 1000;
  }
}
