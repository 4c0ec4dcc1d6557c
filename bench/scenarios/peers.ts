/** The gateway against its peers: one customer, a list of 640 bytes. */
import { startPeers } from '../peers.ts';
import { medianOf, type Rounds, runRounds } from '../rounds.ts';
import {
  BUSY_CONNECTIONS,
  busyLoad,
  costCells,
  describeRounds,
  jobFor,
  roundsSettings,
  type Scenario,
} from '../scenario.ts';

const HEAD = ['gateway', 'CPU µs/request', 'of Redis', 'ratio to tollgate', 'requests/s', 'p50 ms', 'p99 ms'];

export const comparePeers: Scenario = async (surroundings, settings) => {
  const started = await startPeers(settings.peers, surroundings);
  const load = await busyLoad(surroundings);
  const jobs = started.peers.map((peer) => jobFor(peer, load));
  const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
  return {
    table: { head: HEAD, rows: jobs.map(({ name }) => row(rounds, name)) },
    remarks: [`${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}.`, ...started.leftOut],
    problems: [...started.problems, ...rounds.problems],
  };
};

function row(rounds: Rounds, name: string): string[] {
  return [
    ...costCells(rounds, name, 'tollgate'),
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
    (medianOf(rounds, name, ({ p50 }) => p50) / 1000).toFixed(2),
    (medianOf(rounds, name, ({ p99 }) => p99) / 1000).toFixed(2),
  ];
}
