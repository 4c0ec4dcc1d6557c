/**
 * Parses config files while the gateway runs, in a thread if parsing may be slow: a file with thousands of overrides
 * takes half a second, a hostile one longer, and on the main thread every request would wait. A thread runs one job
 * with a deadline and a memory limit, and is then terminated.
 */
import { extname } from 'node:path';
import { runInThread, ThreadBoundError, type ThreadBounds } from '../base/bounded-thread.ts';
import type { Config, ConfigSource } from './config.ts';
import type { ConfigChange, DisclosedConfig } from './config-changes.ts';
import type { Environment } from './environment.ts';
import { deepFreeze, parseConfig } from './load.ts';
import { ConfigError } from './problems.ts';

/** `.ts` in a checkout, where Node.js strips the types; `.js` in the built package. */
const ENTRY = new URL(`./parser-thread${extname(import.meta.filename)}`, import.meta.url);
/** Parsing this much takes about 10 ms, less than the CPU time that starting a thread costs another core. */
const MAX_BYTES_ON_MAIN_THREAD = 16 * 1024;

export interface ParserJob {
  /** The file name shown in problems. */
  readonly file: string;
  readonly content: Uint8Array;
  readonly environment: Environment;
  /** Base of relative file names; by default the folder of the file. */
  readonly folder?: string;
  /** If given, the result is the {@link Comparison} with it, else the config. */
  readonly running?: DisclosedConfig & Pick<Config, 'source'>;
}

export type ParserResult =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly problems: readonly string[]; readonly source: ConfigSource | undefined };

/** For the gateway's own file. A file with 10,000 overrides takes half a second and 100 MiB. */
export const RELOAD_BOUNDS: ThreadBounds = { cpuMs: 30_000, heapMebibytes: 512 };
/** For a posted file: enough for 1 MiB of overrides, and safe in a container that is limited to 512 MiB. */
export const PREVIEW_BOUNDS: ThreadBounds = { cpuMs: 10_000, heapMebibytes: 128 };

/** How a posted file differs from the running configuration. Plain data, without any secret. */
export interface Comparison {
  readonly hash: string;
  /** The first 100 changes. */
  readonly changes: readonly ConfigChange[];
  readonly changesTotal: number;
  readonly needsRestart: boolean;
  /** Secret settings that are set in both files, and may differ: a preview never compares secrets. */
  readonly uncompared: readonly string[];
  readonly limits: Pick<Config, 'plans' | 'formerPlans' | 'overrides'>;
}

/** Parses the gateway's own file like `parseConfig`. Rejects with ConfigError, also when the thread exceeds a limit. */
export async function parseWithoutStall(job: ParserJob, options: ThreadBounds): Promise<Config> {
  const { file, content, environment } = job;
  if (content.byteLength <= MAX_BYTES_ON_MAIN_THREAD) return await parseConfig(file, content, environment);
  return deepFreeze(await runJob<Config>(job, options));
}

/**
 * Parses a posted file within the limits of preview-scope.ts, and compares it with the running configuration. Always
 * uses a thread, because the client that posts the file is less trusted than the operator. Rejects like
 * {@link parseWithoutStall}.
 */
export async function compareInThread(
  job: ParserJob,
  { disclosed, expressions, source }: Config,
  options: ThreadBounds,
): Promise<Comparison> {
  return await runJob<Comparison>({ ...job, running: { disclosed, expressions, source } }, options);
}

async function runJob<Value>(job: ParserJob, bounds: ThreadBounds): Promise<Value> {
  let result: ParserResult;
  try {
    const workerData = { ...job, environment: { ...job.environment } };
    result = (await runInThread(ENTRY, workerData, bounds)) as ParserResult;
  } catch (error) {
    throw error instanceof ThreadBoundError ? ConfigError.of(job.file, [{ path: [], what: error.message }]) : error;
  }
  if (result.kind === 'refused') throw new ConfigError(result.problems, result.source);
  return result.value as Value;
}
