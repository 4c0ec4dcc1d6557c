/** Large responses and large uploads: what a gateway pays for bytes rather than for requests. */
import { type PeerName, startPeers, type TollgateOptions } from '../peers.ts';
import { probe } from '../probe.ts';
import { formatSpread } from '../report.ts';
import { medianOf, pairwise, type Rounds, runRounds, totalMicros } from '../rounds.ts';
import { busyLoad, describeRounds, jobFor, roundsSettings, type Scenario } from '../scenario.ts';
import { expectBody } from '../slice.ts';
import { filePath, LIST_PATH } from '../surroundings.ts';

interface Transfer {
  readonly size: string;
  readonly connections: number;
  readonly path: string;
  /** Of each request; left out: the responses are what is transferred. */
  readonly bodyBytes?: number;
}

interface Comparison {
  /** What is transferred. */
  readonly what: string;
  readonly participants: readonly PeerName[];
  readonly transfers: readonly Transfer[];
  readonly tollgate?: TollgateOptions;
}

export const compareSizes: Scenario = compareTransfers({
  what: 'response',
  participants: ['tollgate', 'tollgate-again', 'nginx-plain', 'fastify', 'express-hpm'],
  transfers: [
    { size: '64 KiB', connections: 64, path: filePath('64 KiB') },
    { size: '5 MB', connections: 16, path: filePath('5 MB') },
  ],
});

export const compareUploads: Scenario = compareTransfers({
  what: 'body',
  participants: ['tollgate', 'tollgate-again', 'nginx-plain', 'nginx-lua', 'fastify', 'express-hpm'],
  transfers: [
    { size: '1 KiB', connections: 64, path: LIST_PATH, bodyBytes: 1024 },
    { size: '64 KiB', connections: 64, path: LIST_PATH, bodyBytes: 64 * 1024 },
    { size: '5 MB', connections: 16, path: LIST_PATH, bodyBytes: 5_000_000 },
  ],
  tollgate: { config: 'bench/peers/tollgate-uploads.yaml' },
});

function compareTransfers({ what, participants, transfers, tollgate }: Comparison): Scenario {
  return async (surroundings, settings) => {
    const names = settings.peers.filter((name) => participants.includes(name));
    const started = await startPeers(names, surroundings, tollgate);
    const busy = await busyLoad(surroundings);
    const rows: string[][] = [];
    const problems = [...started.problems];
    for (const { size, ...transfer } of transfers) {
      settings.say(size);
      const { body } = await probe(`${surroundings.upstream.origin}${transfer.path}`, undefined);
      const load = { ...busy, ...transfer, expected: expectBody(body) };
      const jobs = started.peers.map((peer) => jobFor(peer, load));
      const rounds = await runRounds(jobs, roundsSettings(surroundings, settings));
      rows.push(...jobs.map(({ name }) => row(rounds, name, size, transfer.bodyBytes)));
      problems.push(...rounds.problems.map((problem) => `${size}: ${problem}`));
    }
    const connections = transfers.map(({ size, connections }) => `${connections} for ${size}`).join(', ');
    const head = ['CPU µs/request', 'of Redis', 'ratio to tollgate', 'MB/s', 'p50 ms', 'p99 ms'];
    return {
      table: { head: [`${what}, gateway`, ...head], rows },
      remarks: [`${describeRounds(settings)} Connections: ${connections}.`, ...started.leftOut],
      problems,
    };
  };
}

function row(rounds: Rounds, name: string, size: string, sentBytes: number | undefined): string[] {
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
