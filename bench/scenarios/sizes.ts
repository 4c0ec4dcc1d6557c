/** Large responses and large uploads: what a gateway pays for bytes rather than for requests. */
import { createCustomer, writeCustomers } from '../customers.ts';
import { type PeerName, startPeers } from '../peers.ts';
import { probe } from '../probe.ts';
import { formatSpread } from '../report.ts';
import { medianOf, pairwise, type Rounds, runRounds, totalMicros } from '../rounds.ts';
import { describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { expectBody } from '../slice.ts';
import { FILE_SIZES, type FileSize, filePath, LIST_PATH } from '../surroundings.ts';

const PARTICIPANTS: readonly PeerName[] = ['tollgate', 'nginx-plain', 'fastify', 'express-hpm'];
const CONNECTIONS: Readonly<Record<FileSize, number>> = { '64 KiB': 64, '5 MB': 16 };
const HEAD = ['response, gateway', 'CPU µs/request', 'of Redis', 'ratio to tollgate', 'MB/s', 'p50 ms', 'p99 ms'];

export const compareSizes: Scenario = async (surroundings, settings) => {
  const { upstream, redis } = surroundings;
  const names = settings.peers.filter((name) => PARTICIPANTS.includes(name));
  const started = await startPeers(names, surroundings);
  const customer = createCustomer('bench');
  await writeCustomers(redis.client, [customer]);
  const rows: string[][] = [];
  const problems = [...started.problems];
  for (const size of FILE_SIZES) {
    settings.say(size);
    const path = filePath(size);
    const { body } = await probe(`${upstream.origin}${path}`, undefined);
    const load = { path, connections: CONNECTIONS[size], key: customer.key, expected: expectBody(body) };
    const jobs = started.peers.map((peer) => jobFor(peer, load));
    const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
    rows.push(...jobs.map(({ name }) => row(rounds, name, size)));
    problems.push(...rounds.problems.map((problem) => `${size}: ${problem}`));
  }
  const connections = FILE_SIZES.map((size) => `${CONNECTIONS[size]} for ${size}`).join(', ');
  return {
    table: { head: HEAD, rows },
    remarks: [`${describeRounds(settings)} Connections: ${connections}.`, ...started.leftOut],
    problems,
  };
};

const UPLOADERS: readonly PeerName[] = ['tollgate', 'nginx-plain', 'nginx-lua', 'fastify', 'express-hpm'];
const UPLOADS = [
  { size: '1 KiB', bodyBytes: 1024, connections: 64 },
  { size: '64 KiB', bodyBytes: 64 * 1024, connections: 64 },
  { size: '5 MB', bodyBytes: 5_000_000, connections: 16 },
];

export const compareUploads: Scenario = async (surroundings, settings) => {
  const { upstream, redis } = surroundings;
  const names = settings.peers.filter((name) => UPLOADERS.includes(name));
  const started = await startPeers(names, surroundings, { config: 'bench/peers/tollgate-uploads.yaml' });
  const customer = createCustomer('bench');
  await writeCustomers(redis.client, [customer]);
  const { body } = await probe(`${upstream.origin}${LIST_PATH}`, undefined);
  const rows: string[][] = [];
  const problems = [...started.problems];
  for (const { size, bodyBytes, connections } of UPLOADS) {
    settings.say(size);
    const load = { path: LIST_PATH, connections, bodyBytes, key: customer.key, expected: expectBody(body) };
    const jobs = started.peers.map((peer) => jobFor(peer, load));
    const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
    rows.push(...jobs.map(({ name }) => row(rounds, name, size, bodyBytes)));
    problems.push(...rounds.problems.map((problem) => `${size}: ${problem}`));
  }
  const connections = UPLOADS.map(({ size, connections }) => `${connections} for ${size}`).join(', ');
  return {
    table: { head: ['body, gateway', ...HEAD.slice(1)], rows },
    remarks: [`${describeRounds(settings)} Connections: ${connections}.`, ...started.leftOut],
    problems,
  };
};

/** `sentBytes`: the body of each request; left out: the responses are what is transferred. */
function row(rounds: Rounds, name: string, size: string, sentBytes?: number): string[] {
  const ratio = pairwise(rounds, [name, 'tollgate'], (slice, ours) => totalMicros(slice) / totalMicros(ours));
  return [
    `${size}, ${name}`,
    medianOf(rounds, name, ({ gatewayMicros }) => gatewayMicros).toFixed(0),
    medianOf(rounds, name, ({ redisMicros }) => redisMicros).toFixed(0),
    formatSpread(ratio, 2),
    medianOf(
      rounds,
      name,
      ({ bytes, requests, micros }) => (sentBytes === undefined ? bytes : requests * sentBytes) / micros,
    ).toFixed(0),
    (medianOf(rounds, name, ({ p50 }) => p50) / 1000).toFixed(1),
    (medianOf(rounds, name, ({ p99 }) => p99) / 1000).toFixed(1),
  ];
}
