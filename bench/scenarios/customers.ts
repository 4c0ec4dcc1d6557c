/** Many customers in random order, and the cost of a request by how often its customer comes. */
import { createCustomers, writeCustomers, writeKeyFile } from '../customers.ts';
import { readCounter } from '../metrics.ts';
import { type Peer, type PeerName, startPeers, startTollgate } from '../peers.ts';
import { probe } from '../probe.ts';
import { medianOf, type Rounds, runRounds } from '../rounds.ts';
import { BUSY_CONNECTIONS, costCells, describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { expectBody } from '../slice.ts';
import { LIST_PATH } from '../surroundings.ts';

const CUSTOMERS = 10_000;
/** Requests a second of one customer, on average over the slices of all gateways. */
const RATES = [0.1, 0.3, 1, 3];
/** Of each connection, before a request: the load of the rates is the same, whatever the gateway. */
const DELAY_MS = 32;
const REQUESTS_PER_SECOND = (1000 * BUSY_CONNECTIONS) / DELAY_MS;
/** By then a gateway knows the customers and their rates. */
const WARM_UP_MS = 20_000;
const HEAD = ['gateway, load', 'CPU µs/request', 'of Redis', 'ratio to tollgate', 'store calls/request', 'requests/s'];

export const spreadCustomers: Scenario = async (surroundings, settings) => {
  const { upstream, redis, workspace } = surroundings;
  const tollgate = await startTollgate(surroundings);
  const started = await startPeers(['tollgate-again', 'nginx-lua'], surroundings);
  const peers: readonly Peer[] = [tollgate, ...started.peers];
  const customers = createCustomers(CUSTOMERS);
  await writeCustomers(redis.client, customers);
  const { body } = await probe(`${upstream.origin}${LIST_PATH}`, undefined);
  const options = roundsSettings(surroundings, settings);
  const problems = [...started.problems];

  const measure = async (label: string, count: number, delayMs: number): Promise<string[][]> => {
    settings.say(label);
    const load = {
      path: LIST_PATH,
      connections: BUSY_CONNECTIONS,
      key: customers[0]?.key,
      keyFile: writeKeyFile(workspace.folder, customers.slice(0, count)),
      delayMs,
      expected: expectBody(body),
    };
    const nameOf = (name: PeerName) => `${name}, ${label}`;
    const jobs = peers.map((peer) => jobFor(peer, { ...load, name: nameOf(peer.name) }));
    const warmUpRounds = Math.ceil(WARM_UP_MS / (peers.length * settings.sliceMs));
    // Its faults do not count: a key that is not in memory yet gets 503 if Redis is not scheduled in time.
    await runRounds(jobs, { ...options, rounds: warmUpRounds });
    const [callsBefore, requestsBefore] = await readCalls(tollgate.opsOrigin);
    const rounds = await runRounds(jobs, options);
    const [callsAfter, requestsAfter] = await readCalls(tollgate.opsOrigin);
    problems.push(...rounds.problems);
    const callsPerRequest = (callsAfter - callsBefore) / (requestsAfter - requestsBefore);
    const calls: Partial<Record<PeerName, string>> = { tollgate: callsPerRequest.toFixed(2), 'nginx-lua': '1' };
    return peers.map(({ name }) => row(rounds, nameOf(name), nameOf('tollgate'), calls[name] ?? ''));
  };

  const rows = await measure('all that it takes', CUSTOMERS, 0);
  for (const rate of RATES) {
    const count = Math.round(REQUESTS_PER_SECOND / peers.length / rate);
    rows.push(...(await measure(`${rate}/s`, count, DELAY_MS)));
  }
  return {
    table: { head: HEAD, rows },
    remarks: [
      `${describeRounds(settings)} Connections: ${BUSY_CONNECTIONS}. Customers: ${CUSTOMERS.toLocaleString('en')}; with a rate for each as many as make ${REQUESTS_PER_SECOND} requests a second within a slice.`,
      'Store calls of tollgate by its own count (`tollgate_store_calls_total`); nginx-lua makes one for every request.',
      ...started.leftOut,
    ],
    problems,
  };
};

/** Calls to the store and completed requests, since the start. */
function readCalls(opsOrigin: string): Promise<[number, number]> {
  return Promise.all([
    readCounter(opsOrigin, 'tollgate_store_calls_total'),
    readCounter(opsOrigin, 'tollgate_http_requests_total'),
  ]);
}

function row(rounds: Rounds, name: string, base: string, callsPerRequest: string): string[] {
  return [
    ...costCells(rounds, name, base),
    callsPerRequest,
    medianOf(rounds, name, ({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
  ];
}
