/** Reads the config file and the files that it names, up to a size limit, so that no file can exhaust memory. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { NamedFile } from './config.ts';
import { ConfigError, systemReason, UnreadableFileError } from './problems.ts';

/** Exceeds the bundle of all well-known CA certificates (about 0.3 MiB), the largest file worth naming. */
const MAX_NAMED_FILE_BYTES = 1024 * 1024;
/** Far above a file with an override for each of 10,000 customers (about 0.5 MiB). */
const MAX_CONFIG_FILE_BYTES = 4 * 1024 * 1024;

/** Reads the bytes of a config file, which may be a pipe: `check-config /dev/stdin`. Rejects with {@link ConfigError}. */
export async function readConfigFile(file: string): Promise<Uint8Array> {
  try {
    await using handle = await open(file, constants.O_RDONLY);
    return await readAtMost(handle, MAX_CONFIG_FILE_BYTES);
  } catch (error) {
    throw ConfigError.of(file, [{ path: [], what: `cannot be read: ${systemReason(error)}` }]);
  }
}

/**
 * Reads a file that the configuration names with a `…_file` setting. Symbolic links are followed, because Kubernetes
 * mounts secrets as links; the target must be a regular file, because reading a device or a pipe may never end.
 */
export async function readNamedFile(file: string): Promise<Buffer> {
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  await using handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const stats = await handle.stat();
  if (stats.isDirectory()) throw new UnreadableFileError('it is a folder');
  if (!stats.isFile()) throw new UnreadableFileError('it is not a regular file');
  return await readAtMost(handle, MAX_NAMED_FILE_BYTES);
}

/** Does not rely on the size that the system reports: it is 0 for files under /proc, and a file may grow meanwhile. */
async function readAtMost(handle: FileHandle, maxBytes: number): Promise<Buffer> {
  // `end` is inclusive: one byte more is read than is allowed.
  const content = await buffer(handle.createReadStream({ end: maxBytes }));
  if (content.length > maxBytes) throw new UnreadableFileError(`it is larger than ${maxBytes / 1024} KiB`);
  return content;
}

/** Hashes the config file and its named files. `named`: content of each named file, undefined if unreadable. */
export function digestOfSource(content: Uint8Array, named: readonly (Uint8Array | undefined)[]): string {
  const hash = createHash('sha256');
  for (const part of [content, ...named]) {
    hash.update(part === undefined ? 'none' : createHash('sha256').update(part).digest());
  }
  return hash.digest('hex');
}

/** Reads the named files again and returns the {@link digestOfSource}. */
export async function digestOfFiles(content: Uint8Array, namedFiles: readonly NamedFile[]): Promise<string> {
  const named: (Uint8Array | undefined)[] = [];
  for (const { file } of namedFiles) named.push(await readNamedFile(file).catch(() => undefined));
  return digestOfSource(content, named);
}
