/** Two gateways over one store with callers that never stop, and what must hold of them whatever happens to the store. */
import { expect, onTestFinished } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { writeCustomer, writeKey } from '../support/redis-system.ts';
import { ask, startLoad } from '../support/steady-load.ts';

/** Used up within the first moments of a test. */
export const LIMIT = 40;
const PLENTY = 100_000_000;
const ALONE_LIMIT = 25;
/** Of other keys that the gateways have never seen. */
const KEYS = 600;
/** How long a request may wait for the store. */
export const TIMEOUT_MS = 1000;
/** Where that is not what is tried. */
export const PATIENT_MS = 5000;
/** What a busy machine may add. Less than what a request takes that waits until its connection is given up. */
const SLACK_MS = 800;
/** A request with a key that its gateway has not in memory reads it, and then asks for its quota. */
const WAITS_OF_OTHERS = 2;
const LOCAL_DECISIONS = 20;
const HEALS = { timeout: 60_000, interval: 100 };
/** A decision takes longer than the deadline now and then on a busy machine; it is made without the store then. */
const ATTEMPTS = 5;

export interface LoadSettings {
  readonly storeUrl: string;
  readonly timeoutMs: number;
  readonly onError: 'local' | 'deny';
  /** Where records are written. */
  readonly records: Pick<RedisServer, 'command'>;
}

export interface LoadedGateways {
  /** Resolves when so many more requests with known keys have been answered, and some with others. */
  more(count: number): Promise<void>;
  /** Resolves when each gateway has decided about some requests without the store: what is wrong has begun. */
  decidedWithoutStore(): Promise<void>;
  /** Requests of the customer with the limit that reached the backend. */
  seen(): number;
  /** The share of each gateway while the store is away. */
  readonly shares: number;
  /** Waits until each gateway says that all is well and decides with the store. */
  healed(): Promise<void>;
  /** Ends the load. Every answer was in time, none was 401, and known keys were served. Resolves to what was answered. */
  sound(): Promise<{ readonly known: ReadonlySet<string>; readonly others: ReadonlySet<string> }>;
  /** A customer of whom nobody has heard yet gets exactly its limit, however many gateways it asks. */
  exactForSomebodyNew(): Promise<void>;
}

export async function startLoadedGateways(settings: LoadSettings): Promise<LoadedGateways> {
  const { storeUrl, timeoutMs, onError, records } = settings;
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const gateways: TestGateway[] = [];
  for (let number = 0; number < 2; number += 1) {
    const gateway = await startTestGateway({
      storeUrl,
      upstreamUrl: backend.url,
      config: { store: { timeout_ms: timeoutMs, on_error: onError }, logging: { access: 'off' } },
    });
    onTestFinished(() => gateway.close());
    gateways.push(gateway);
  }
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('there are two');

  const write = async (customer: string, limit: number, keys: readonly string[]) => {
    await writeCustomer(records, customer, { plan: 'enterprise', requests_per_hour: limit });
    await Promise.all(keys.map((key) => writeKey(records, key, customer)));
  };
  const others = Array.from({ length: KEYS }, (_, i) => `one-of-many-${i}`);
  const known = ['key-of-limited', 'key-of-large'];
  await write('limited', LIMIT, known.slice(0, 1));
  await write('large', PLENTY, [...known.slice(1), ...others]);
  for (let number = 0; number < ATTEMPTS; number += 1) {
    await write(`new-${number}`, ALONE_LIMIT, [`key-of-new-${number}`]);
  }
  const origins = gateways.map((gateway) => gateway.public);
  for (const origin of origins) {
    for (const key of known) await expect.poll(async () => (await ask(origin, key)).status, HEALS).toBe(200);
  }

  const instances = await Promise.all(
    gateways.map(async (gateway) => (await callAdmin(gateway, '/status')).body.instances as number),
  );
  const load = startLoad([...origins, ...origins], cycle(known));
  const newcomers = startLoad(origins, cycle(others));
  const seenOf = (customer: string) =>
    backend.seen.filter(({ headers }) => headers['x-tollgate-customer'] === customer).length;

  return {
    async more(count) {
      await Promise.all([load.more(count), newcomers.more(Math.ceil(count / 20))]);
    },

    async decidedWithoutStore() {
      for (const gateway of gateways) {
        const before = await localDecisions(gateway);
        await expect.poll(() => localDecisions(gateway), HEALS).toBeGreaterThan(before + LOCAL_DECISIONS);
      }
    },

    seen: () => seenOf('limited'),
    shares: instances.reduce((sum, count) => sum + Math.max(1, Math.floor(LIMIT / count)), 0),

    async healed() {
      for (const gateway of gateways) {
        await expect
          .poll(async () => (await fetch(`${gateway.ops}/readyz`)).json(), HEALS)
          .toMatchObject({ status: 'ready' });
        // Nobody is told of usage while the store does not answer.
        const usage = () => fetch(`${gateway.public}/v1/usage`, { headers: bearer('key-of-large') });
        await expect.poll(async () => (await usage()).status, HEALS).toBe(200);
      }
    },

    async sound() {
      const answers = { known: await load.stop(), others: await newcomers.stop() };
      for (const [kind, all] of Object.entries(answers)) {
        const waits = kind === 'known' ? 1 : WAITS_OF_OTHERS;
        const late = all.filter(({ tookMs }) => tookMs > waits * timeoutMs + SLACK_MS);
        expect(late, `${kind} keys that waited too long`).toEqual([]);
      }
      const told = (all: typeof answers.known) => new Set(all.map(({ status, code }) => `${status} ${code ?? ''}`));
      return { known: told(answers.known), others: told(answers.others) };
    },

    async exactForSomebodyNew() {
      const admitted: number[] = [];
      for (let number = 0; number < ATTEMPTS && admitted.at(-1) !== ALONE_LIMIT; number += 1) {
        const key = `key-of-new-${number}`;
        for (let i = 0; i < ALONE_LIMIT + 5; i += 1) await ask(first.public, key);
        for (let i = 0; i < 5; i += 1) await ask(second.public, key);
        admitted.push(seenOf(`new-${number}`));
      }
      expect(admitted.at(-1), `after ${admitted.join(', ')}`).toBe(ALONE_LIMIT);
    },
  };
}

async function localDecisions(gateway: TestGateway): Promise<number> {
  const decisions = Object.entries(await readMetric(gateway, 'tollgate_quota_decisions_total'));
  return decisions.reduce((sum, [labels, count]) => (labels.includes('mode="local"') ? sum + count : sum), 0);
}

function cycle(keys: readonly string[]): () => string {
  let next = 0;
  return () => keys[next++ % keys.length] ?? '';
}
