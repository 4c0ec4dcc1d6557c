/** What every scenario gets and gives. */
import { fileURLToPath } from 'node:url';
import { createCustomer, writeCustomers } from './customers.ts';
import type { Load, OpenLoop } from './load.ts';
import type { Peer, PeerName } from './peers.ts';
import { probe } from './probe.ts';
import { type Findings, formatSpread } from './report.ts';
import { medianOf, pairwise, type Rounds, type RoundsSettings, totalMicros } from './rounds.ts';
import { expectBody, type Job } from './slice.ts';
import { command, LIST_PATH, type Surroundings } from './surroundings.ts';

export interface Settings {
  readonly rounds: number;
  readonly sliceMs: number;
  /** How many requests the scenario `memory` sends. */
  readonly requests: number;
  /** The peers to take part, where a scenario has them. */
  readonly peers: readonly PeerName[];
  /** Gets lines of progress. */
  readonly say: (line: string) => void;
}

export type Scenario = (surroundings: Surroundings, settings: Settings) => Promise<Findings>;

/** Connections of a client that keeps a gateway busy. */
export const BUSY_CONNECTIONS = 64;

export function wrkCommand({ programs, pinning }: Surroundings): Load['wrk'] {
  return command(pinning.loading, programs.wrk, []);
}

export function senderCommand({ pinning }: Surroundings): OpenLoop['sender'] {
  return command(pinning.loading, process.execPath, [fileURLToPath(new URL('open-loop-sender.ts', import.meta.url))]);
}

/** Creates a customer. Returns the load by which it keeps a gateway busy. */
export async function busyLoad({ redis, upstream }: Surroundings) {
  const customer = createCustomer('bench');
  await writeCustomers(redis.client, [customer]);
  const { body } = await probe(`${upstream.origin}${LIST_PATH}`, undefined);
  return { path: LIST_PATH, connections: BUSY_CONNECTIONS, key: customer.key, expected: expectBody(body) };
}

/** The same for one gateway and wrk, without rounds. */
export async function busyWrk(surroundings: Surroundings, { origin }: Peer) {
  const { connections, key, path } = await busyLoad(surroundings);
  return { wrk: wrkCommand(surroundings), url: new URL(path, origin).href, connections, key };
}

export function roundsSettings(surroundings: Surroundings, settings: Settings): RoundsSettings {
  return {
    wrk: wrkCommand(surroundings),
    redisPid: surroundings.redis.process.pid,
    durationMs: settings.sliceMs,
    rounds: settings.rounds,
    say: settings.say,
  };
}

/** A job for one of the gateways, named after it unless `load` has a name. */
export function jobFor(peer: Peer, load: Omit<Job, 'name' | 'origin' | 'pid'> & { readonly name?: string }): Job {
  return { name: peer.name, origin: peer.origin, pid: peer.process.pid, ...load };
}

/** For the report. */
export function describeRounds({ rounds, sliceMs }: Settings): string {
  return `Rounds: ${rounds}, of ${sliceMs / 1000} s for each.`;
}

/** The begin of a row: the name, CPU µs a request of the gateway and of Redis, and the ratio of both to that of `base`. */
export function costCells(rounds: Rounds, name: string, base: string): string[] {
  const ratio = pairwise(rounds, [name, base], (slice, other) => totalMicros(slice) / totalMicros(other));
  return [
    name,
    medianOf(rounds, name, ({ gatewayMicros }) => gatewayMicros).toFixed(1),
    medianOf(rounds, name, ({ redisMicros }) => redisMicros).toFixed(1),
    formatSpread(ratio, 2),
  ];
}
