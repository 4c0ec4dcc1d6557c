import { watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

/** Files are often written in several steps: they are checked once their folders have been quiet for this long. */
const SETTLE_MS = 100;
/** The files are checked after this time at the latest, even if changes in their folders continue. */
const MAX_SETTLE_MS = 500;

interface FileWatchOptions {
  readonly files: readonly string[];
  /** The time between checks if no change is reported. */
  readonly pollMs: number;
  /** Reads the files. Only the first call may reject. */
  readonly check: () => Promise<unknown>;
  /** Called with the reason if a folder is not watched. Polling then remains. */
  readonly onUnwatched?: (error: unknown) => void;
  /** Ends the watch. */
  readonly signal: AbortSignal;
}

/**
 * Calls `check` now, shortly after each change in the files' folders, and at least every `pollMs`; never concurrently.
 * Resolves or rejects with the first call. Does not keep the process alive.
 *
 * Changes of other files' content in those folders are ignored.
 *
 * Watches folders instead of files, because replacing a file creates another one, and Kubernetes replaces a mounted file
 * by switching a symbolic link beside it. Polls too, because some changes are not reported: in network file systems, or
 * in the folder that a link leads to.
 */
export async function watchFiles({ files, pollMs, check, onUnwatched, signal }: FileWatchOptions): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  /** The first change since the last check began, which may have missed it. */
  let changedAtMs: number | undefined;

  async function checkNow(): Promise<void> {
    if (signal.aborted) return;
    isChecking = true;
    changedAtMs = undefined;
    try {
      await check();
    } finally {
      isChecking = false;
      scheduleCheck(changedAtMs === undefined ? pollMs : SETTLE_MS);
    }
  }

  function scheduleCheck(delayMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => void checkNow(), delayMs).unref();
  }

  function noteChange(): void {
    const nowMs = performance.now();
    changedAtMs ??= nowMs;
    if (!isChecking) scheduleCheck(Math.max(0, Math.min(SETTLE_MS, changedAtMs + MAX_SETTLE_MS - nowMs)));
  }

  const names = new Set(files.map((file) => basename(file)));
  // Watch before the first check: a change in between would go unnoticed until the next poll.
  for (const folder of new Set(files.map((file) => dirname(resolve(file))))) {
    try {
      const watcher = watch(folder, { persistent: false, signal }, (event, name) => {
        // Content of other files: a database or a log in the same folder changes all the time.
        if (event === 'rename' || name === null || names.has(name)) noteChange();
      });
      watcher.on('error', (error) => {
        watcher.close();
        onUnwatched?.(error);
      });
    } catch (error) {
      onUnwatched?.(error);
    }
  }
  await checkNow();
}
