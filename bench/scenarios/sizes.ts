/** Large responses: what a gateway pays for bytes rather than for requests. */
import { createCustomer, writeCustomers } from '../customers.ts';
import { type PeerName, startPeers } from '../peers.ts';
import { probe } from '../probe.ts';
import { formatSpread } from '../report.ts';
import { medianOf, pairwise, type Rounds, runRounds, totalMicros } from '../rounds.ts';
import { describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { expectBody } from '../slice.ts';
import { FILE_SIZES, type FileSize, filePath } from '../surroundings.ts';

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

function row(rounds: Rounds, name: string, size: FileSize): string[] {
  const ratio = pairwise(rounds, [name, 'tollgate'], (slice, ours) => totalMicros(slice) / totalMicros(ours));
  return [
    `${size}, ${name}`,
    medianOf(rounds, name, ({ gatewayMicros }) => gatewayMicros).toFixed(0),
    medianOf(rounds, name, ({ redisMicros }) => redisMicros).toFixed(0),
    formatSpread(ratio, 2),
    medianOf(rounds, name, ({ bytes, micros }) => bytes / micros).toFixed(0),
    (medianOf(rounds, name, ({ p50 }) => p50) / 1000).toFixed(1),
    (medianOf(rounds, name, ({ p99 }) => p99) / 1000).toFixed(1),
  ];
}
