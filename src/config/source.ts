import { createHash } from 'node:crypto';
import { readNamedFile } from './bounded-file.ts';

/** What a configuration was read from, besides the environment. */
export interface ConfigSource {
  readonly namedFiles: readonly NamedFile[];
  /** Changes with the content of the file and of each named file. Not for the outside: secrets are part of it. */
  readonly digest: string;
}

/** A file that the configuration names with a `…_file` setting. */
export interface NamedFile {
  /** As in the reference: `admin.token_file`. */
  readonly setting: string;
  /** Absolute. */
  readonly file: string;
}

/** `named`: the content of each named file, undefined for one that could not be read. */
export function digestOfSource(content: Uint8Array, named: readonly (Uint8Array | undefined)[]): string {
  const hash = createHash('sha256');
  for (const part of [content, ...named]) {
    hash.update(part === undefined ? 'none' : createHash('sha256').update(part).digest());
  }
  return hash.digest('hex');
}

/** {@link digestOfSource} of the files as they are now. */
export async function digestOfFiles(content: Uint8Array, namedFiles: readonly NamedFile[]): Promise<string> {
  const named: (Uint8Array | undefined)[] = [];
  for (const { file } of namedFiles) named.push(await readNamedFile(file).catch(() => undefined));
  return digestOfSource(content, named);
}
