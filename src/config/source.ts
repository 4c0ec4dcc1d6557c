import { createHash } from 'node:crypto';
import { readNamedFile } from './bounded-file.ts';

/** The files that a configuration was read from; the environment is not included. */
export interface ConfigSource {
  readonly namedFiles: readonly NamedFile[];
  /** Changes with the content of the config file and of each named file. Never expose it: it hashes secrets. */
  readonly digest: string;
}

/** A file that the configuration names with a `…_file` setting. */
export interface NamedFile {
  /** As in the config reference: `admin.token_file`. */
  readonly setting: string;
  /** Absolute path. */
  readonly file: string;
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
