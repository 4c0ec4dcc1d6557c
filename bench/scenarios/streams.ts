/** Many event streams at a time: what an event costs, how long it takes, and what a stream costs in memory. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { treeCpuMicros } from '../cpu.ts';
import { freePort } from '../free-port.ts';
import { readSettledMemory } from '../memory.ts';
import { type PeerName, startPeers } from '../peers.ts';
import { medianOf, takeTurns } from '../rounds.ts';
import { busyLoad, costCells, describeRounds, type Scenario } from '../scenario.ts';
import type { Slice, SliceFault } from '../slice.ts';
import { command, isListening, LIST_PATH, type Surroundings } from '../surroundings.ts';

const STREAMS = 1000;
/** They make a gateway work before its memory is read. */
const FIRST_STREAMS = 100;
/** Until a gateway has noticed that its streams were closed. */
const CLOSE_MS = 500;
const PARTICIPANTS: readonly PeerName[] = ['tollgate', 'tollgate-again', 'nginx-plain', 'fastify'];
const DIRECT = 'no gateway';
const HEAD = ['gateway', 'CPU µs/event', 'of Redis', 'ratio to tollgate', 'p50 ms', 'p99 ms', 'KiB/stream'];

const RESULT = z.object({ events: z.int(), closed: z.int(), p50: z.number(), p99: z.number(), p999: z.number() });

const BACKEND = fileURLToPath(new URL('../event-backend.ts', import.meta.url));
const READER = fileURLToPath(new URL('../event-reader.ts', import.meta.url));

export const streamEvents: Scenario = async (surroundings, settings) => {
  const upstream = await startEventBackend(surroundings);
  const names = settings.peers.filter((name) => PARTICIPANTS.includes(name));
  const started = await startPeers(
    names,
    { ...surroundings, upstream, connections: STREAMS },
    { config: 'bench/peers/tollgate-streams.yaml' },
  );
  const { key } = await busyLoad(surroundings);
  const memory = new Map<string, number>();
  for (const { name, origin, process } of started.peers) {
    // Its worker, a process of its own, keeps the streams.
    if (name === 'nginx-plain') continue;
    settings.say(`memory of ${name}`);
    await (await openStreams(surroundings, origin, key, FIRST_STREAMS, settings.sliceMs)).close();
    const before = await readSettledMemory(process.pid);
    const streams = await openStreams(surroundings, origin, key, STREAMS, settings.sliceMs);
    memory.set(name, ((await readSettledMemory(process.pid)).pss - before.pss) / STREAMS);
    await streams.close();
  }
  const redisPid = surroundings.redis.process.pid;
  const targets = started.peers.map(({ name, origin, process }) => ({ name, origin, pids: [process.pid, redisPid] }));
  const jobs = [...targets, { name: DIRECT, origin: upstream.origin, pids: [] }];
  const rounds = await takeTurns(jobs, settings, async ({ origin, pids }): Promise<Slice | SliceFault> => {
    const cpuMicros = () => pids.map(treeCpuMicros);
    const streams = await openStreams(surroundings, origin, key, STREAMS, settings.sliceMs);
    const before = cpuMicros();
    const { events, closed, ...delays } = await streams.result;
    const [gatewayMicros = 0, redisMicros = 0] = cpuMicros().map((micros, i) => (micros - (before[i] ?? 0)) / events);
    await streams.close();
    if (closed > 0) return { fault: `${closed} streams were closed` };
    const micros = 1000 * settings.sliceMs;
    const perSecond = (1000 * events) / settings.sliceMs;
    const noFaults = { bytes: 0, refused: 0, connect: 0, read: 0, write: 0, timeout: 0 };
    return {
      ...delays,
      ...noFaults,
      requests: events,
      micros,
      gatewayMicros,
      redisMicros,
      requestsPerSecond: perSecond,
    };
  });
  const milliseconds = (name: string, of: 'p50' | 'p99') =>
    (medianOf(rounds, name, (slice) => slice[of]) / 1000).toFixed(2);
  return {
    table: {
      head: HEAD,
      rows: jobs.map(({ name }) => [
        ...(name === DIRECT ? [name, '', '', ''] : costCells(rounds, name, 'tollgate')),
        milliseconds(name, 'p50'),
        milliseconds(name, 'p99'),
        memory.has(name) ? ((memory.get(name) ?? 0) / 1024).toFixed(1) : '',
      ]),
    },
    remarks: [
      `${describeRounds(settings)} ${STREAMS.toLocaleString('en')} streams, each with an event every 100 ms. CPU time counts while all of them are open.`,
      `Milliseconds from when the backend sends an event until the client has it; "${DIRECT}" is what backend and client need themselves.`,
      ...started.leftOut,
    ],
    problems: [...started.problems, ...rounds.problems],
  };
};

async function startEventBackend({ workspace, pinning }: Surroundings) {
  const port = await freePort();
  await workspace.start({
    name: 'event-backend',
    command: command(pinning.loading, process.execPath, [BACKEND, String(port)]),
    isReady: () => isListening(port),
  });
  return { port, origin: `http://127.0.0.1:${port}` };
}

/** Resolves when each stream has had an event. `result`: of the time after that. */
async function openStreams({ pinning }: Surroundings, origin: string, key: string, count: number, durationMs: number) {
  const args = [READER, `${origin}${LIST_PATH}`, key, String(count), String(durationMs)];
  const [program, ...before] = command(pinning.loading, process.execPath, args);
  const child = spawn(program, before, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const nextLine = async (): Promise<unknown> => {
    const { value, done } = await lines.next();
    if (done) throw new Error('the reader of event streams has ended');
    return JSON.parse(value);
  };
  await nextLine();
  const result = nextLine().then((line) => RESULT.parse(line));
  return {
    result,
    async close() {
      await result;
      child.stdin.end();
      await setTimeout(CLOSE_MS);
    },
  };
}
