/**
 * What a gateway adds to the latency of a client that waits for each response: one connection, against the backend itself.
 * The backend that is called directly runs where the gateways run, or it would be spared the way to another CPU, which
 * a gateway is not.
 */
import { type PeerName, startPeers } from '../peers.ts';
import { formatSpread } from '../report.ts';
import { medianOf, pairwise, type Rounds, runRounds } from '../rounds.ts';
import { BUSY_CONNECTIONS, busyLoad, describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import type { Job } from '../slice.ts';
import { startBackend } from '../surroundings.ts';

const PARTICIPANTS: readonly PeerName[] = ['tollgate', 'tollgate-again', 'nginx-lua', 'fastify'];
const DIRECT = 'direct';
const TARGET_P50_MICROS = 150;
const TARGET_P99_MICROS = 1000;
const HEAD = ['gateway', 'p50 µs', 'p99 µs', 'added to p50, µs', 'added to p99, µs'];

export const measureLatency: Scenario = async (surroundings, settings) => {
  const { workspace, programs, pinning } = surroundings;
  const names = settings.peers.filter((name) => PARTICIPANTS.includes(name));
  const started = await startPeers(names, surroundings);
  const load = { ...(await busyLoad(surroundings)), connections: 1, timeEach: true };
  const near = (name: string) => startBackend({ workspace, programs, cpus: pinning.measured, name });
  const direct: Job = { ...load, name: DIRECT, origin: (await near('near-upstream')).origin, pid: undefined };
  const control: Job = { ...direct, name: `${DIRECT}, again`, origin: (await near('near-upstream-again')).origin };
  const jobs = [direct, control, ...started.peers.map((peer) => jobFor(peer, load))];
  const options = roundsSettings(surroundings, settings);
  // One connection alone would take minutes until the code is compiled.
  const busy = jobs.map((job) => ({ ...job, connections: BUSY_CONNECTIONS, timeEach: false }));
  const warmUp = await runRounds(busy, { ...options, rounds: 1 });
  const rounds = await runRounds(jobs, options);
  return {
    table: { head: HEAD, rows: jobs.map(({ name }) => row(rounds, name)) },
    remarks: [
      `${describeRounds(settings)} Connections: 1.`,
      `The target is to add at most ${TARGET_P50_MICROS} µs to the p50 and ${TARGET_P99_MICROS} µs to the p99.`,
      ...started.leftOut,
    ],
    problems: [...started.problems, ...warmUp.problems, ...rounds.problems],
  };
};

function row(rounds: Rounds, name: string): string[] {
  return [
    name,
    medianOf(rounds, name, ({ p50 }) => p50).toFixed(0),
    medianOf(rounds, name, ({ p99 }) => p99).toFixed(0),
    formatSpread(
      pairwise(rounds, [name, DIRECT], (slice, other) => slice.p50 - other.p50),
      0,
    ),
    formatSpread(
      pairwise(rounds, [name, DIRECT], (slice, other) => slice.p99 - other.p99),
      0,
    ),
  ];
}
