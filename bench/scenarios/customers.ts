/** Many customers in random order: what caches and leases are worth when hardly anybody comes twice in a second. */
import { createCustomers, writeCustomers, writeKeyFile } from '../customers.ts';
import { readCounter } from '../metrics.ts';
import { type Peer, startPeers, startTollgate } from '../peers.ts';
import { probe } from '../probe.ts';
import { medianOf, type Rounds, runRounds } from '../rounds.ts';
import { BUSY_CONNECTIONS, costCells, describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { expectBody } from '../slice.ts';
import { LIST_PATH } from '../surroundings.ts';

const CUSTOMERS = 10_000;
const HEAD = ['gateway', 'CPU µs/request', 'of Redis', 'ratio to tollgate', 'store calls/request', 'requests/s'];

export const spreadCustomers: Scenario = async (surroundings, settings) => {
  const { upstream, redis, workspace } = surroundings;
  const tollgate = await startTollgate(surroundings);
  const started = await startPeers(['nginx-lua'], surroundings);
  const customers = createCustomers(CUSTOMERS);
  await writeCustomers(redis.client, customers);
  const { body } = await probe(`${upstream.origin}${LIST_PATH}`, undefined);
  const load = {
    path: LIST_PATH,
    connections: BUSY_CONNECTIONS,
    key: customers[0]?.key,
    keyFile: writeKeyFile(workspace.folder, customers),
    expected: expectBody(body),
  };
  const peers: readonly Peer[] = [tollgate, ...started.peers];
  const jobs = peers.map((peer) => jobFor(peer, load));
  const options = roundsSettings(surroundings, settings);
  // So that what is counted below is not the first sight of every customer.
  const warmUp = await runRounds(jobs, { ...options, rounds: 1 });
  const [callsBefore, requestsBefore] = await readCalls(tollgate.opsOrigin);
  const rounds = await runRounds(jobs, options);
  const [callsAfter, requestsAfter] = await readCalls(tollgate.opsOrigin);
  const callsPerRequest = (callsAfter - callsBefore) / (requestsAfter - requestsBefore);
  return {
    table: {
      head: HEAD,
      rows: jobs.map(({ name }) => row(rounds, name, name === 'tollgate' ? callsPerRequest.toFixed(2) : '1')),
    },
    remarks: [
      `${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}. Customers: ${CUSTOMERS.toLocaleString('en')}.`,
      'Store calls of tollgate by its own count (`tollgate_store_calls_total`); nginx-lua makes one for every request.',
      ...started.leftOut,
    ],
    problems: [...started.problems, ...warmUp.problems, ...rounds.problems],
  };
};

/** Calls to the store and completed requests, since the start. */
function readCalls(opsOrigin: string): Promise<[number, number]> {
  return Promise.all([
    readCounter(opsOrigin, 'tollgate_store_calls_total'),
    readCounter(opsOrigin, 'tollgate_http_requests_total'),
  ]);
}

function row(rounds: Rounds, name: string, callsPerRequest: string): string[] {
  return [
    ...costCells(rounds, name, 'tollgate'),
    callsPerRequest,
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
  ];
}
