/** A channel over one connection to every master of a cluster, all with the same role. */
import { type Clock, systemScheduler } from '../../../base/clock.ts';
import { type StoreObserver, type StoreOp, StoreUnavailableError } from '../../store.ts';
import type { RedisChannel, WalkPlan } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { describe, type RedisConnection, withoutArguments } from '../connection/connection.ts';
import { digestOf, ownSlotsFrom, slotOf } from '../protocol/hash-slots.ts';
import { RoutedClient, type Router } from './routed-client.ts';

/** The cluster as it is known now, and its connections of one role. */
export interface ClusterConnections extends Router {
  /** Every slot has a master. */
  readonly isComplete: boolean;
  /** A digest of which master holds which slots. */
  readonly layout: string;
  /** Sorted by address. */
  readonly masters: readonly RedisConnection[];
  /** Why the slots could not be read, for operators. */
  readonly lossReason: string | undefined;
}

export interface ClusterChannelOptions {
  readonly connections: ClusterConnections;
  /** Operations that take longer reject. Without it, they reject only when a connection closes. */
  readonly commandTimeoutMs?: number;
  readonly clock: Clock;
  readonly observer: StoreObserver;
}

export class ClusterChannel implements RedisChannel {
  readonly #options: ClusterChannelOptions;
  readonly client: RoutedClient;
  readonly isCluster = true;

  constructor(options: ClusterChannelOptions) {
    this.#options = options;
    this.client = new RoutedClient(options.connections);
  }

  get servers(): readonly RedisChannel[] {
    return this.#options.connections.masters;
  }

  /**
   * Asks each master for its own slots, because it knows about those before the other nodes. Masters with a migrating slot
   * come first. That order is right while slots move one after the other, as Redis' own tools move them. It does not cover
   * two masters that send each other slots at the same time.
   */
  async planWalk(op: StoreOp): Promise<WalkPlan> {
    const { masters } = this.#options.connections;
    const asking = masters.map(async (server) => {
      const nodes = await server.run(op, (redis) => redis.cluster('NODES'));
      return { server, ...ownSlotsFrom(nodes) };
    });
    const answers = await Promise.all(asking);
    if (answers.length === 0) throw new StoreUnavailableError('not connected to Redis: no master is known');
    return {
      servers: answers.toSorted((a, b) => Number(b.isMigrating) - Number(a.isMigrating)).map(({ server }) => server),
      layout: digestOf(answers.map(({ slots }) => slots)),
    };
  }

  get sessions(): string | undefined {
    const { isComplete, masters, layout } = this.#options.connections;
    if (!isComplete || !masters.every(({ connected }) => connected)) return undefined;
    return [layout, ...masters.map(({ session }) => session)].join();
  }

  isUsable(name?: string): boolean {
    const { isComplete, masters } = this.#options.connections;
    if (name !== undefined) return this.#connectionFor(name)?.usable === true;
    return isComplete && masters.every(({ usable }) => usable);
  }

  sessionOf(name: string): number {
    return this.#connectionFor(name)?.session ?? Number.NaN;
  }

  async run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    const { connections, clock, observer } = this.#options;
    if (connections.masters.length === 0) {
      throw new StoreUnavailableError(`not connected to Redis: ${connections.lossReason ?? 'no slots were read yet'}`);
    }
    const startedMs = clock.monotonicMs();
    const seconds = () => (clock.monotonicMs() - startedMs) / 1000;
    try {
      const result = await this.#inTime(operation(this.client));
      observer.called(op, seconds(), false);
      return result;
    } catch (error) {
      // A command that was not sent is not a call.
      if (error instanceof StoreUnavailableError) throw error;
      observer.called(op, seconds(), true);
      withoutArguments(error);
      throw new StoreUnavailableError(`Redis: ${describe(error)}`, { cause: error });
    }
  }

  attempt<T>(operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    return this.#inTime(operation(this.client));
  }

  /** One deadline for the whole operation: each of its commands has its own deadline, and redirections add commands. */
  #inTime<T>(result: Promise<T>): Promise<T> {
    const { commandTimeoutMs } = this.#options;
    if (commandTimeoutMs === undefined) return result;
    return new Promise((resolve, reject) => {
      const late = systemScheduler.deadline(commandTimeoutMs, () => reject(new Error('Command timed out')));
      result.then(resolve, reject).finally(() => late.cancel());
    });
  }

  #connectionFor(name: string): RedisConnection | undefined {
    try {
      return this.#options.connections.connectionFor(slotOf(name));
    } catch {
      return undefined;
    }
  }
}
