/** One slice: a few seconds of load on one gateway, what it cost, and whether every response was correct. */
import { treeCpuMicros } from './cpu.ts';
import { type Load, type LoadResult, type OpenLoop, runLoad } from './load.ts';
import { type ProbeResponse, probe } from './probe.ts';

/** One kind of load on one target, the same in every round. */
export interface Job {
  readonly name: string;
  readonly origin: string;
  /** Of the gateway; undefined where nothing stands before the backend. */
  readonly pid: number | undefined;
  readonly path: string;
  readonly connections: number;
  /** The key of the probes, and of the load unless it has a file. */
  readonly key: string | undefined;
  /** A file of keys that the load takes at random. */
  readonly keyFile?: string;
  /** See Load. */
  readonly delayMs?: number;
  /** See Load. */
  readonly timeEach?: boolean;
  /** See Load. */
  readonly bodyBytes?: number;
  /** See Load. */
  readonly openLoop?: OpenLoop;
  /** Runs before each slice of so many milliseconds. */
  readonly prepare?: (durationMs: number) => Promise<void>;
  readonly expected: Expected;
}

/** What is right: the status, and a body that `fault` has nothing to say against. */
export interface Expected {
  readonly status: number;
  readonly fault: (body: Buffer) => string | undefined;
}

export interface SliceSettings {
  readonly wrk: Load['wrk'];
  readonly redisPid: number;
  readonly durationMs: number;
  readonly seed: number;
}

export interface Slice extends LoadResult {
  /** CPU time of the gateway's processes, in µs a request. */
  readonly gatewayMicros: number;
  /** CPU time of Redis, in µs a request. */
  readonly redisMicros: number;
  readonly requestsPerSecond: number;
}

export interface SliceFault {
  readonly fault: string;
}

/** Heads differ by a digit or two from response to response. */
const HEAD_VARIATION_BYTES = 32;

export async function runSlice(job: Job, settings: SliceSettings): Promise<Slice | SliceFault> {
  const { origin, path, connections, key, keyFile, delayMs = 0, timeEach, bodyBytes, openLoop, pid, expected } = job;
  const url = `${origin}${path}`;
  await job.prepare?.(settings.durationMs);
  const before = await probeRightly(url, key, expected);
  if ('fault' in before) return before;
  const gatewayBefore = pid === undefined ? 0 : treeCpuMicros(pid);
  const redisBefore = treeCpuMicros(settings.redisPid);
  const load = await runLoad({
    wrk: settings.wrk,
    url,
    connections,
    durationMs: settings.durationMs,
    key: keyFile === undefined ? key : { file: keyFile, seed: settings.seed, delayMs },
    timeEach,
    bodyBytes,
    openLoop,
  });
  const redisMicros = treeCpuMicros(settings.redisPid) - redisBefore;
  const gatewayMicros = pid === undefined ? 0 : treeCpuMicros(pid) - gatewayBefore;
  const after = await probeRightly(url, key, expected);
  if ('fault' in after) return after;
  const fault = loadFault(load, { responseBytes: before.bytes, connections, refused: expected.status >= 400 });
  if (fault !== undefined) return { fault };
  return {
    ...load,
    gatewayMicros: gatewayMicros / load.requests,
    redisMicros: redisMicros / load.requests,
    requestsPerSecond: load.requests / (load.micros / 1_000_000),
  };
}

/** Expects an response of the backend: 200 and this body. */
export function expectBody(body: Buffer): Expected {
  return {
    status: 200,
    fault: (actual) => (actual.equals(body) ? undefined : `its body of ${actual.length} bytes is not the backend's`),
  };
}

/** One response, or what is wrong with it. */
async function probeRightly(
  url: string,
  key: string | undefined,
  expected: Expected,
): Promise<ProbeResponse | SliceFault> {
  try {
    const response = await probe(url, key);
    const fault = responseFault(response, expected);
    return fault === undefined ? response : { fault };
  } catch (error) {
    return { fault: `a request failed: ${error instanceof Error ? error.message : String(error)}` };
  }
}

export function responseFault({ status, body }: ProbeResponse, expected: Expected): string | undefined {
  if (status !== expected.status) return `a request got ${status}, not ${expected.status}`;
  const fault = expected.fault(body);
  return fault && `a response is wrong: ${fault}`;
}

export interface ExpectedLoad {
  /** Of one correct response. */
  readonly responseBytes: number;
  readonly connections: number;
  /** Whether every response must be a refusal, or none. */
  readonly refused: boolean;
}

/** What is wrong with a run of wrk, or undefined: failed connections, wrong statuses, responses of another size. */
export function loadFault(load: LoadResult, { responseBytes, connections, refused }: ExpectedLoad): string | undefined {
  const { requests, bytes, connect, read, write, timeout } = load;
  if (requests === 0) return 'no request got a response';
  if (connect + read + write + timeout > 0) {
    return `socket errors: ${connect} connect, ${read} read, ${write} write, ${timeout} timeout`;
  }
  if (load.refused !== (refused ? requests : 0)) return `${load.refused} of ${requests} responses were refusals`;
  // At the end every connection may hold a part of a response that is not counted as a request.
  const least = requests * (responseBytes - HEAD_VARIATION_BYTES);
  const most = (requests + connections) * (responseBytes + HEAD_VARIATION_BYTES);
  if (bytes < least || bytes > most) {
    return `${requests} responses had ${Math.round(bytes / requests)} bytes each, where one request got ${responseBytes}`;
  }
  return undefined;
}
