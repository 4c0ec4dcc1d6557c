/**
 * Notices that a configuration file may have changed. The folder is watched and not the file: a Kubernetes ConfigMap is
 * swapped by turning a symbolic link beside it, and a watch on the file would stay with the old one for good. What a watch
 * can miss (a network file system, a link into another folder, secrets in files elsewhere) is found by looking now and
 * then.
 */
import { type FSWatcher, watch } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A file is written in several steps, and is read when nothing has happened for so long. */
const SETTLE_MS = 100;
/** And after so long whatever happens, so that something else in the folder cannot keep it from being read. */
const LONGEST_SETTLE_MS = 500;
const LOOK_MS = 5000;

export interface ConfigWatchOptions {
  readonly file: string;
  /** Called some time after anything in the file's folder has changed, and every few seconds. Never throws. */
  readonly look: () => void;
  /** Told why there is no watch, so that a change is noticed by looking only. */
  readonly onUnwatched: (error: unknown) => void;
}

export interface ConfigWatch {
  close(): void;
}

/** Keeps no process alive. */
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
