/** A folder for temporary files that never waits for a disk: the embedded store syncs its file when it is opened and closed. */
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';

const FOLDER = '/dev/shm';
/** Containers have 64 MiB by default, which the tests may fill. */
const MIN_FREE_BYTES = 2 * 1024 ** 3;

/** Returns a folder in memory, if this system has one with enough space in which programs may be started, as tests do. */
export function folderInMemory(): string | undefined {
  try {
    accessSync(FOLDER, constants.W_OK);
    const { bavail, bsize } = statfsSync(FOLDER);
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    const options = mounts
      .map((line) => line.split(' '))
      .findLast(([, path]) => path === FOLDER)?.[3]
      ?.split(',');
    const isUsable = bavail * bsize >= MIN_FREE_BYTES && options !== undefined && !options.includes('noexec');
    return isUsable ? FOLDER : undefined;
  } catch {
    return undefined;
  }
}
