/** One kind of connection to every master of a cluster, as one channel. */
import { type Clock, systemScheduler } from '../../clock.ts';
import { type StoreObserver, type StoreOp, StoreUnavailableError } from '../store.ts';
import type { RedisChannel, WalkPlan } from './channel.ts';
import type { RedisClient } from './client.ts';
import { digestOf, ownSlotsFrom, slotOf } from './cluster-slots.ts';
import { describe, type RedisConnection, withoutArguments } from './connection.ts';
import { RoutedClient, type Router } from './routed-client.ts';

export interface ClusterMembers extends Router {
  /** Every slot has a master. */
  readonly whole: boolean;
  readonly layout: string;
  /** In the order of their addresses. */
  readonly masters: readonly RedisConnection[];
  /** Why the cluster is not known, in words for operators. */
  readonly lossReason: string | undefined;
}

export interface ClusterChannelOptions {
  /** Its connections of this kind. */
  readonly members: ClusterMembers;
  /** Operations that take longer reject; without it they end with the connections. */
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
    this.client = new RoutedClient(options.members);
  }

  get servers(): readonly RedisChannel[] {
    return this.#options.members.masters;
  }

  /**
   * Each master is asked for its own slots: of those it is the first to know. The one that is giving a slot away comes
   * first. That is an order for slots that move one after the other, as Redis' own tools move them, and none for two
   * masters that give each other slots at the same time.
   */
  async planWalk(op: StoreOp): Promise<WalkPlan> {
    const { masters } = this.#options.members;
    const asked = masters.map(async (server) => {
      const nodes = await server.run(op, (redis) => redis.cluster('NODES'));
      return { server, ...ownSlotsFrom(nodes) };
    });
    const held = await Promise.all(asked);
    if (held.length === 0) throw new StoreUnavailableError('not connected to Redis: no master is known');
    return {
      servers: held.toSorted((a, b) => Number(b.givesAway) - Number(a.givesAway)).map(({ server }) => server),
      layout: digestOf(held.map(({ slots }) => slots)),
    };
  }

  get sessions(): string | undefined {
    const { whole, masters, layout } = this.#options.members;
    if (!whole || !masters.every(({ connected }) => connected)) return undefined;
    return [layout, ...masters.map(({ session }) => session)].join();
  }

  isUsable(name?: string): boolean {
    const { whole, masters } = this.#options.members;
    return name === undefined ? whole && masters.every(({ usable }) => usable) : this.#holderOf(name)?.usable === true;
  }

  sessionOf(name: string): number {
    return this.#holderOf(name)?.session ?? Number.NaN;
  }

  async run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    const { members, clock, observer } = this.#options;
    if (members.masters.length === 0) {
      throw new StoreUnavailableError(`not connected to Redis: ${members.lossReason ?? 'the cluster is being asked'}`);
    }
    const startedMs = clock.monotonicMs();
    const seconds = () => (clock.monotonicMs() - startedMs) / 1000;
    try {
      const result = await this.#inTime(operation(this.client));
      observer.called(op, seconds(), false);
      return result;
    } catch (error) {
      // What could not be sent at all is no call.
      if (error instanceof StoreUnavailableError) throw error;
      observer.called(op, seconds(), true);
      withoutArguments(error);
      throw new StoreUnavailableError(`Redis: ${describe(error)}`, { cause: error });
    }
  }

  attempt<T>(operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    return this.#inTime(operation(this.client));
  }

  /** Each command has a deadline of its own on its connection; an operation of several must not add them up. */
  #inTime<T>(result: Promise<T>): Promise<T> {
    const { commandTimeoutMs } = this.#options;
    if (commandTimeoutMs === undefined) return result;
    return new Promise((resolve, reject) => {
      const late = systemScheduler.deadline(commandTimeoutMs, () => reject(new Error('Command timed out')));
      result.then(resolve, reject).finally(() => late.cancel());
    });
  }

  #holderOf(name: string): RedisConnection | undefined {
    try {
      return this.#options.members.holderOf(slotOf(name));
    } catch {
      return undefined;
    }
  }
}
