/** Latencies at fixed rates, of clients that do not wait for each other's responses. */
import { type PeerName, startPeers } from '../peers.ts';
import { formatSpread } from '../report.ts';
import { medianOf, pairwise, type Rounds, runRounds } from '../rounds.ts';
import {
  BUSY_CONNECTIONS,
  busyLoad,
  describeRounds,
  jobFor,
  roundsSettings,
  type Scenario,
  senderCommand,
} from '../scenario.ts';

const PARTICIPANTS: readonly PeerName[] = ['tollgate', 'tollgate-again', 'nginx-plain', 'nginx-lua', 'fastify'];
/** Of what the gateway can do. */
const SHARES = [0.5, 0.8];
const CAPACITY_ROUNDS = 3;
/** More than are busy, so that requests wait in the gateway. */
const CONNECTIONS = 128;
/** A gateway that was idle for some seconds begins with a collection of its whole heap. What is measured is one in service. */
const WARM_UP_MS = 1000;
const HEAD = ['load, gateway', 'requests/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'p99, ratio to tollgate'];

export const measureTail: Scenario = async (surroundings, settings) => {
  const names = settings.peers.filter((name) => PARTICIPANTS.includes(name));
  const started = await startPeers(names, surroundings);
  const load = await busyLoad(surroundings);
  const jobs = started.peers.map((peer) => jobFor(peer, load));
  const options = roundsSettings(surroundings, settings);
  const capacity = await runRounds(jobs, { ...options, rounds: CAPACITY_ROUNDS });
  const most = medianOf(capacity, 'tollgate', ({ requestsPerSecond }) => requestsPerSecond);
  const problems = [...started.problems, ...capacity.problems];
  const rows: string[][] = [];
  for (const share of SHARES) {
    const requestsPerSecond = Math.round(share * most);
    const openLoop = { sender: senderCommand(surroundings), requestsPerSecond, warmUpMs: WARM_UP_MS };
    settings.say(`${requestsPerSecond} requests/s`);
    const rounds = await runRounds(
      jobs.map((job) => ({ ...job, connections: CONNECTIONS, openLoop })),
      options,
    );
    problems.push(...rounds.problems);
    rows.push(...jobs.map(({ name }) => row(rounds, name, share)));
  }
  const capacities = jobs.map(({ name }) => {
    const perSecond = medianOf(capacity, name, ({ requestsPerSecond }) => requestsPerSecond);
    return `${name} ${perSecond.toFixed(0)}`;
  });
  return {
    table: { head: HEAD, rows },
    remarks: [
      `${describeRounds(settings)} Before each slice, ${WARM_UP_MS / 1000} s of the same load. Connections: ${CONNECTIONS}. Loads are shares of what tollgate can do, the same for all.`,
      `Requests a second of clients that wait for responses, with ${BUSY_CONNECTIONS} connections: ${capacities.join(', ')}. A gateway whose rate is near or below the load has a queue that grows, and its latencies with it.`,
      ...started.leftOut,
    ],
    problems,
  };
};

function row(rounds: Rounds, name: string, share: number): string[] {
  const milliseconds = (micros: number) => (micros / 1000).toFixed(2);
  return [
    `${100 * share} %, ${name}`,
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
    milliseconds(medianOf(rounds, name, ({ p50 }) => p50)),
    milliseconds(medianOf(rounds, name, ({ p99 }) => p99)),
    milliseconds(medianOf(rounds, name, ({ p999 }) => p999)),
    formatSpread(
      pairwise(rounds, [name, 'tollgate'], (slice, ours) => slice.p99 / ours.p99),
      2,
    ),
  ];
}
