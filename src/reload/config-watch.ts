/**
 * Detects possible changes of a config file. It watches the folder: Kubernetes updates a ConfigMap by switching a
 * symbolic link beside the file, and a watch on the file would stay on the old one. A watch misses some changes
 * (network file systems, links into other folders, secrets in files elsewhere), so the file is also checked every few
 * seconds.
 */
import { type FSWatcher, watch } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A file may be written in several steps. It is read once its folder has been quiet for this long. */
const SETTLE_MS = 100;
/** The file is read after this time at the latest, even if other changes in the folder continue. */
const LONGEST_SETTLE_MS = 500;
const LOOK_MS = 5000;

export interface ConfigWatchOptions {
  readonly file: string;
  /** Called shortly after any change in the file's folder, and every few seconds. Never throws. */
  readonly look: () => void;
  /** Called with the reason if the folder is not watched; changes are then found only by the regular checks. */
  readonly onUnwatched: (error: unknown) => void;
}

export interface ConfigWatch {
  close(): void;
}

/** Starts watching a config file. Does not keep the process alive. */
export function watchConfig({ file, look, onUnwatched }: ConfigWatchOptions): ConfigWatch {
  const folder = dirname(resolve(file));
  let settling: NodeJS.Timeout | undefined;
  let firstEventMs = 0;

  function settle(): void {
    const nowMs = performance.now();
    if (settling === undefined) firstEventMs = nowMs;
    clearTimeout(settling);
    const delayMs = Math.max(0, Math.min(SETTLE_MS, firstEventMs + LONGEST_SETTLE_MS - nowMs));
    settling = setTimeout(() => {
      settling = undefined;
      look();
    }, delayMs).unref();
  }

  let watcher: FSWatcher | undefined;
  function unwatched(error: unknown): void {
    watcher?.close();
    watcher = undefined;
    onUnwatched(error);
  }
  try {
    watcher = watch(folder, { persistent: false }, settle).on('error', unwatched);
  } catch (error) {
    unwatched(error);
  }
  const looking = setInterval(look, LOOK_MS).unref();
  return {
    close() {
      clearInterval(looking);
      clearTimeout(settling);
      watcher?.close();
    },
  };
}
