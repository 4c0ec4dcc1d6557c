/** What goes wrong in a soak, one after the other, and what puts it right. */
import { setTimeout } from 'node:timers/promises';
import { writeCustomers } from '../../bench/customers.ts';
import { readCounterBy } from '../../bench/metrics.ts';
import type { Clients } from './clients.ts';
import type { Scene } from './scene.ts';
import { MOODS, type Mood } from './upstream.ts';
import { descendants } from './vitals.ts';

export interface Fault {
  readonly name: string;
  /** Breaks something for a while and mends it. Rejects when what must happen meanwhile does not. */
  readonly strike: (scene: Scene, clients: Clients) => Promise<void>;
}

const LASTS_MS = 1500;
const NOTICED_WITHIN_MS = 15_000;
const RELOADS = 'tollgate_config_reloads_total';

/** All that can strike a gateway with so many workers. */
export function faultsFor(workers: number): Fault[] {
  const faults = [redisKilled, redisStopped, redisEmptied, upstreamGone, callersAbort, configurationChanged];
  const moods = MOODS.filter((mood) => mood !== 'serving').map(upstreamIs);
  return [...faults, ...moods, ...(workers > 1 ? [workerKilled] : [])];
}

const redisKilled: Fault = {
  name: 'Redis killed, and started again with its data',
  async strike({ redis }) {
    redis.signal('SIGKILL');
    await setTimeout(LASTS_MS);
    await redis.start();
  },
};

const redisStopped: Fault = {
  name: 'Redis stopped: connected, and silent',
  async strike({ redis }) {
    redis.signal('SIGSTOP');
    await setTimeout(LASTS_MS);
    redis.signal('SIGCONT');
  },
};

const redisEmptied: Fault = {
  name: 'Redis emptied, and restored from a backup',
  async strike({ redis, good, spent }) {
    const installed = await redis.client.get('tollgate:installed');
    if (installed === null) throw new Error('the gateway has not written tollgate:installed');
    await redis.client.flushall();
    await setTimeout(LASTS_MS);
    await writeCustomers(redis.client, [...good, ...spent]);
    await redis.client.set('tollgate:installed', installed);
  },
};

const upstreamGone: Fault = {
  name: 'backend gone: connections refused',
  async strike({ upstream }) {
    await upstream.close();
    await setTimeout(LASTS_MS);
    await upstream.open();
  },
};

const callersAbort: Fault = {
  name: 'clients disconnect',
  async strike(_, clients) {
    const usual = clients.abortShare;
    clients.abortShare = 1;
    await setTimeout(LASTS_MS);
    clients.abortShare = usual;
  },
};

const configurationChanged: Fault = {
  name: 'configuration broken, then changed',
  async strike({ opsOrigin, configure }) {
    const rises = async (result: string, change: (before: number) => void) => {
      const count = async () => (await readCounterBy(opsOrigin, RELOADS, 'result')).get(result) ?? 0;
      const before = await count();
      change(before);
      await until(async () => (await count()) > before, `${RELOADS}{result="${result}"} does not rise`);
    };
    await rises('invalid', () => configure('broken'));
    // Another one each time.
    await rises('applied', (before) => configure(1001 + before));
  },
};

const workerKilled: Fault = {
  name: 'worker killed',
  async strike({ gateway, workers }) {
    const [victim] = descendants(gateway.pid);
    if (victim === undefined) throw new Error('the gateway has no worker');
    process.kill(victim, 'SIGKILL');
    const isReplaced = async () => {
      const now = descendants(gateway.pid);
      return now.length >= workers && !now.includes(victim);
    };
    await until(isReplaced, 'a worker that was killed is not replaced');
  },
};

function upstreamIs(mood: Mood): Fault {
  return {
    name: `backend ${mood}`,
    async strike({ upstream }) {
      upstream.mood = mood;
      await setTimeout(LASTS_MS);
      upstream.mood = 'serving';
    },
  };
}

async function until(isSo: () => Promise<boolean>, otherwise: string): Promise<void> {
  const deadlineMs = performance.now() + NOTICED_WITHIN_MS;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error(`${otherwise} within ${NOTICED_WITHIN_MS / 1000} s`);
    await setTimeout(100);
  }
}
