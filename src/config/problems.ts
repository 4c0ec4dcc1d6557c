import type { ConfigSource } from './config.ts';

/** A location in the configuration: mapping keys and list indexes, from the root. */
export type Path = readonly (string | number)[];

export interface ConfigFault {
  /** From 1; by default that of `path`. */
  readonly line?: number;
  readonly path: Path;
  /** What is wrong and what to do; never contains text that is a value. */
  readonly what: string;
}

/** Bounds the output: a file of a megabyte can have a problem on each line. */
const MAX_LISTED_PROBLEMS = 100;

/** The configuration is unusable. `problems`: the first 100, each as `file:line: path: what is wrong`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  /** The files that were read; undefined if reading failed before the named files were known. */
  readonly source: ConfigSource | undefined;

  constructor(problems: readonly string[], source?: ConfigSource) {
    super(problems.join('\n'));
    this.problems = Object.freeze([...problems]);
    this.source = source;
  }

  static of(file: string, problems: readonly ConfigFault[], source?: ConfigSource): ConfigError {
    return new ConfigError(formatProblems(file, problems, 'problems'), source);
  }
}

/** The gateway refuses a file that the system would let it read. The message completes "cannot be read: …". */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFileError';
}

/** Returns the first 100, each as `file:line: path: what is wrong`, or `file:line: warning: path: what may go wrong`. */
export function formatProblems(
  file: string,
  problems: readonly ConfigFault[],
  kind: 'problems' | 'warnings',
): string[] {
  const sorted = problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
  const mark = kind === 'warnings' ? ': warning' : '';
  const texts = [...new Set(sorted.map((problem) => formatProblem(file, problem, mark)))];
  const listed = texts.slice(0, MAX_LISTED_PROBLEMS);
  if (texts.length > listed.length) listed.push(`${file}${mark}: ${texts.length - listed.length} more ${kind}`);
  return listed;
}

function formatProblem(file: string, { line, path, what }: ConfigFault, mark: string): string {
  const place = (line === undefined ? file : `${file}:${line}`) + mark;
  return path.length === 0 ? `${place}: ${what}` : `${place}: ${formatPath(path)}: ${what}`;
}

/** Formats a path as `routes[0].path`; a key that is not one plain word is quoted in brackets: `aliases["/v1"]`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    if (!/^[A-Za-z0-9_-]+$/.test(step)) return `${text}[${JSON.stringify(step)}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** Returns a unique string for a path, as a key for maps and sets. */
export function pathKey(path: Path): string {
  return JSON.stringify(path);
}

const SYSTEM_REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
};

/** Returns why a file could not be read, without its name, which may come from an environment variable. */
export function systemReason(error: unknown): string {
  if (error instanceof UnreadableFileError) return error.message;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return SYSTEM_REASONS[code] ?? (code || 'unknown reason');
}
