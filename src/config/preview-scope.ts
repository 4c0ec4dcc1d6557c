/**
 * Limits a posted file to the variables and files that the running file uses for the same setting. Otherwise a preview
 * could reveal a variable in another setting's value, error message or hash, or confirm a guessed value by its verdict.
 */
import type { Config } from './config.ts';
import { formatPath, type Path } from './problems.ts';

/** Each function returns why the use is refused, as the text of a problem; undefined if it is allowed. */
export type PreviewScope = ReturnType<typeof previewScope>;

const FOREIGN_SUBSTITUTION =
  'a preview replaces variables only where the running file has the same text for the same setting; write the value';
const FOREIGN_FILE = 'a preview opens only the file that the running file names for the same setting';

export function previewScope({ expressions, source }: Pick<Config, 'expressions' | 'source'>) {
  const running = new Set([...expressions].map(([key, expression]) => useOf(JSON.parse(key), expression)));
  const files = new Map(source.namedFiles.map(({ setting, file }) => [setting, file]));
  return {
    substitution: (path: Path, expression: string) =>
      running.has(useOf(path, expression)) ? undefined : FOREIGN_SUBSTITUTION,
    namedFile: (setting: string, file: string) => (files.get(setting) === file ? undefined : FOREIGN_FILE),
  };
}

/** Identifies a use, ignoring list indexes: `upstream.urls[1]` is the same setting as `upstream.urls[0]`. */
function useOf(path: Path, expression: string): string {
  const setting = formatPath(path.map((step) => (typeof step === 'number' ? 0 : step)));
  return JSON.stringify([setting, expression]);
}
