/** Load by wrk: one thread, keep-alive, as many requests as get a response. Or by a sender with a clock of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
const TIMEOUT_SECONDS = 10;

export interface Load {
  /** Program and arguments that wrk's own are appended to. */
  readonly wrk: readonly [string, ...string[]];
  readonly url: string;
  readonly connections: number;
  readonly durationMs: number;
  /**
   * One API key for all requests, or a file with one a line of which each request takes any; left out: no key. `delayMs`:
   * how long each connection waits on average before a request, for a load that does not depend on the gateway.
   */
  readonly key?: string | { readonly file: string; readonly seed: number; readonly delayMs?: number } | undefined;
  /** For one connection: percentiles of the requests as they were, instead of wrk's corrected ones. */
  readonly timeEach?: boolean | undefined;
  /** Bytes of the body of each request, which is then a POST. Left out: a GET. */
  readonly bodyBytes?: number | undefined;
  /** Requests by open-loop-sender.ts, with one key, instead of wrk. */
  readonly openLoop?: OpenLoop | undefined;
}

export interface OpenLoop {
  /** Program and arguments that the sender's own are appended to. */
  readonly sender: readonly [string, ...string[]];
  readonly requestsPerSecond: number;
  /** Of the same load before latencies count. */
  readonly warmUpMs: number;
}

const LOAD_RESULT = z.strictObject({
  /** Answers that arrived whole. */
  requests: z.number(),
  /** Received, heads included. */
  bytes: z.number(),
  micros: z.number(),
  /** Answers with a status of 400 or more. */
  refused: z.number(),
  /** Connections that could not be opened, failed reads and writes, responses later than 10 s. */
  connect: z.number(),
  read: z.number(),
  write: z.number(),
  timeout: z.number(),
  /** Latency in µs. */
  p50: z.number(),
  p99: z.number(),
  p999: z.number(),
});

export type LoadResult = z.infer<typeof LOAD_RESULT>;

/** @throws Error when wrk fails. */
export async function runLoad(load: Load): Promise<LoadResult> {
  return load.openLoop === undefined ? runWrk(load) : runSender(load, load.openLoop);
}

async function runSender({ url, key, connections, durationMs }: Load, openLoop: OpenLoop): Promise<LoadResult> {
  const [program, ...args] = openLoop.sender;
  const numbers = [connections, openLoop.requestsPerSecond, durationMs, openLoop.warmUpMs].map(String);
  return parseLoadResult(await outputOf(spawn(program, [...args, url, String(key), ...numbers])));
}

async function runWrk(load: Load): Promise<LoadResult> {
  const { wrk, url, connections, durationMs, key, timeEach = false, bodyBytes } = load;
  const [program, ...args] = wrk;
  // wrk takes whole seconds only; at SIGINT it stops and reports as at its end.
  const maxSeconds = Math.ceil(durationMs / 1000) + 5;
  const options = [
    ...['--threads', '1', '--connections', String(connections), '--duration', String(maxSeconds)],
    ...['--timeout', String(TIMEOUT_SECONDS), '--script', SCRIPT],
    ...(typeof key === 'string' ? ['--header', `Authorization: Bearer ${key}`] : []),
    url,
    '--',
    ...(typeof key === 'object' ? ['keys', key.file, String(key.seed), String(key.delayMs ?? 0)] : []),
    ...(timeEach ? ['each'] : []),
    ...(bodyBytes === undefined ? [] : ['post', String(bodyBytes)]),
  ];
  const child = spawn(program, [...args, ...options]);
  const interrupt = setTimeout(() => child.kill('SIGINT'), durationMs);
  const output = await outputOf(child);
  clearTimeout(interrupt);
  return parseLoadResult(output);
}

/** Resolves at the end of the process, which does not outlive this one. */
async function outputOf(child: ChildProcessWithoutNullStreams): Promise<string> {
  const killWithUs = () => child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  process.off('exit', killWithUs);
  return `${stdout}${stderr}`;
}

/** Reads the line that wrk.lua or the sender prints at the end of the output. @throws Error with the output when it is not there. */
export function parseLoadResult(output: string): LoadResult {
  const line = output.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`the load gave no result:\n${output}`);
  return LOAD_RESULT.parse(JSON.parse(line));
}
