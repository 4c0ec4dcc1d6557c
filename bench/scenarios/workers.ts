/** What a request costs with several workers, against one process that does it all. */
import { startTollgate } from '../peers.ts';
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

const TARGET_RATIO = 1.1;
const ONE = 'one process';
const TWO = '2 workers';
const HEAD = ['gateway', 'CPU µs/request', 'of Redis', 'ratio to one process', 'requests/s'];

export const compareWorkers: Scenario = async (surroundings, settings) => {
  // On one CPU workers would only take turns.
  const everywhere = { ...surroundings, pinning: { ...surroundings.pinning, measured: [] } };
  const one = await startTollgate(everywhere);
  const again = await startTollgate(everywhere);
  const two = await startTollgate(everywhere, { workers: 2 });
  const load = await busyLoad(surroundings);
  const jobs = [
    jobFor(one, { ...load, name: ONE }),
    jobFor(again, { ...load, name: `${ONE}, again` }),
    jobFor(two, { ...load, name: TWO }),
  ];
  const options = roundsSettings(surroundings, settings);
  // Each of the workers has half of the requests to get warm by.
  const warmUp = await runRounds(jobs, { ...options, rounds: 4 });
  const rounds = await runRounds(jobs, options);
  return {
    table: { head: HEAD, rows: jobs.map(({ name }) => row(rounds, name)) },
    remarks: [
      `${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}.`,
      `CPU time of all processes of the gateway, which may use every CPU here. The target is a ratio of at most ${TARGET_RATIO}.`,
    ],
    problems: [...warmUp.problems, ...rounds.problems],
  };
};

function row(rounds: Rounds, name: string): string[] {
  return [
    ...costCells(rounds, name, ONE),
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
  ];
}
