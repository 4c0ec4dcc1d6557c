/** What a client without manners does to get more than its limit: to any gateways, known by their URLs alone. */
import { setTimeout } from 'node:timers/promises';
import { Pool } from 'undici';
import { type CountingBackend, mostInAnyPeriod, mostInAnyWindow } from './counting-backend.ts';

export interface Target {
  /** Instances of one gateway that share a quota. */
  readonly origins: readonly string[];
  readonly path: string;
  /** Of every request. A new customer for each attack, where the tool may create them. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  readonly limit: number;
  readonly windowMs: number;
  /** Of a window that does not slide, but is followed by the next: when that of the present customer began. */
  readonly beganMs?: (() => number) | undefined;
  readonly backend: CountingBackend;
  /** Lets so much time pass. */
  readonly pass: (ms: number) => Promise<void>;
  readonly faults: readonly Fault[];
  /** Holds the replies of the store back. Resolves to what ends that. */
  readonly slow?: Fault['begin'] | undefined;
  /** Resolves when the instances know of each other again, after their clock was set ahead. */
  readonly settled?: () => Promise<void>;
  /** How long requests wait for a connection before they begin: {@link BEGIN_LATE_MS}, or less in tests. */
  readonly beginLateMs: number;
}

/** Nearly as long as a request of Tollgate may begin after its admission: 0.99 of a hold of 2 s. */
export const BEGIN_LATE_MS = 1800;

export interface Fault {
  readonly name: string;
  /** Resolves to what ends it. */
  begin(): Promise<() => Promise<void>>;
}

export interface Finding {
  readonly attack: string;
  /** Requests at the backend, in the fullest window. */
  readonly most: number;
  readonly sent: number;
}

const CONNECTIONS = 32;
const EDGE_SHARE = 0.003;
/** How long before the end of a window more bursts come: shorter and longer than a lease's hold, within one bucket. */
const BEFORE_END_MS = [500, 3000, 8000];
/** Shorter than a gateway waits for its store: replies are late, and requests begin late. */
const SLOW_MS = 60;
/** Tollgate counts in buckets of this length, by the store's clock. */
const BUCKET_MS = 10_000;
/** Soon enough after a bucket would be dropped, if the late requests were counted in the one before theirs. */
const ECHO_MS = 50;
const FAULT_MS = 1500;
/** A gateway may hold a request while its store is away. */
const RESPONSE_MS = 10_000;

/** Runs all attacks, one after the other. */
export async function attack(target: Target): Promise<Finding[]> {
  const { windowMs, pass, faults, backend, beginLateMs } = target;
  const edgeMs = windowMs * EDGE_SHARE;
  const findings = [
    await run('burst', target, (burst) => burst(2)),
    await run('bursts at the edge of a window', target, async (burst) => {
      // A fixed window begins with this request.
      await burst(0);
      await pass(windowMs - edgeMs);
      await burst(2);
      await pass(2 * edgeMs);
      await burst(2);
    }),
    await run('a burst at each fifth of a window', target, async (burst) => {
      for (let step = 0; step < 8; step += 1) {
        await burst(0.5);
        await pass(windowMs / 5);
      }
    }),
  ];
  for (const beforeMs of BEFORE_END_MS) {
    findings.push(
      await run(`slow replies, and bursts ${beforeMs / 1000} s before the end of the window`, target, async (burst) => {
        const end = await target.slow?.();
        const late = burst(1);
        await setTimeout(SLOW_MS);
        await end?.();
        await late;
        await pass(windowMs - beforeMs);
        await burst(2);
        await pass(2 * beforeMs);
        await burst(2);
      }),
    );
  }
  findings.push(
    await run(`requests that begin ${beginLateMs / 1000} s late, around the end of a bucket`, target, async (burst) => {
      const edgeMs = Math.ceil((backend.nowMs() + BUCKET_MS) / BUCKET_MS) * BUCKET_MS;
      await pass(edgeMs - 0.75 * beginLateMs - backend.nowMs());
      backend.responseDelayMs = beginLateMs;
      await burst(1);
      backend.responseDelayMs = 0;
      // What the late requests have left.
      await burst(2);
      await pass(edgeMs + windowMs + ECHO_MS - backend.nowMs());
      await burst(2);
    }),
  );
  await target.settled?.();
  for (const fault of faults) {
    findings.push(
      await run(fault.name, target, async (burst) => {
        await burst(0.5);
        const end = await fault.begin();
        const meanwhile = burst(2);
        await setTimeout(FAULT_MS);
        await end();
        await meanwhile;
        await setTimeout(FAULT_MS);
        await burst(2);
      }),
    );
  }
  return findings;
}

/** `burst`: sends so many times the limit, and at least one request, over all instances at once. */
type Attack = (burst: (timesLimit: number) => Promise<void>) => Promise<void>;

async function run(name: string, target: Target, act: Attack): Promise<Finding> {
  const { backend, limit, windowMs, origins, path, beganMs } = target;
  backend.forget();
  const headers = await target.headers();
  let sent = 0;
  await act(async (timesLimit) => {
    const requests = Math.max(1, Math.ceil(timesLimit * limit));
    sent += requests;
    // New connections each time: those of the last burst may have expired.
    const pools = origins.map((origin) => new Pool(origin, { connections: CONNECTIONS, headersTimeout: RESPONSE_MS }));
    await Promise.all(
      Array.from({ length: requests }, async (_, i) => {
        const pool = pools[i % pools.length];
        try {
          const response = await pool?.request({ path, method: 'GET', headers });
          await response?.body.dump();
        } catch {
          // A lost connection is no response; what counts is what the backend saw.
        }
      }),
    );
    await Promise.all(pools.map((pool) => pool.destroy()));
  });
  const { arrivals } = backend;
  const most =
    beganMs === undefined ? mostInAnyWindow(arrivals, windowMs) : mostInAnyPeriod(arrivals, windowMs, beganMs());
  return { attack: name, most, sent };
}
