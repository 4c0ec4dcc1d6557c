/** A channel over one connection to every master of a cluster, all with the same role. */
import type { Clock } from '../../../base/clock.ts';
import { type StoreObserver, type StoreOp, StoreUnavailableError } from '../../store.ts';
import type { RedisChannel, ScanPlan } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { observed, type RedisConnection, withTimeout } from '../connection/connection.ts';
import { digestOf, ownSlotsFrom, slotOf } from '../protocol/hash-slots.ts';
import { type ChannelRole, type ClusterView, RoutedClient } from './routed-client.ts';

interface ClusterChannelOptions {
  readonly cluster: ClusterView;
  readonly role: ChannelRole;
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
    this.client = new RoutedClient(options.cluster, options.role);
  }

  get servers(): readonly RedisChannel[] {
    return this.#connections;
  }

  /**
   * Reads each master's own slots, which it knows before the other nodes. Masters with a migrating slot come first. That
   * order is right while slots move one after the other, as Redis' own tools move them, but not while two masters send
   * each other slots at the same time.
   */
  async planScan(op: StoreOp): Promise<ScanPlan> {
    const reads = this.#connections.map(async (server) => {
      const nodes = await server.run(op, (redis) => redis.cluster('NODES'));
      return { server, ...ownSlotsFrom(nodes) };
    });
    const read = await Promise.all(reads);
    if (read.length === 0) throw new StoreUnavailableError('not connected to Redis: no master is known');
    return {
      servers: read.toSorted((a, b) => Number(b.isMigrating) - Number(a.isMigrating)).map(({ server }) => server),
      layout: digestOf(read.map(({ slots }) => slots)),
    };
  }

  get sessions(): string | undefined {
    const { isComplete, layout } = this.#options.cluster;
    const sessions = this.#connections.map((connection) => connection.sessions);
    return isComplete && !sessions.includes(undefined) ? [layout, ...sessions].join() : undefined;
  }

  isUsable(name?: string): boolean {
    if (name !== undefined) return this.#connectionFor(name)?.isUsable() === true;
    return this.#options.cluster.isComplete && this.#connections.every((connection) => connection.isUsable());
  }

  sessionOf(name: string): number {
    return this.#connectionFor(name)?.sessionOf() ?? Number.NaN;
  }

  async run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    const { cluster } = this.#options;
    if (this.#connections.length === 0) {
      throw new StoreUnavailableError(`not connected to Redis: ${cluster.lossReason ?? 'no slots were read yet'}`);
    }
    return observed(op, this.#options, () => this.attempt(operation));
  }

  /** One deadline for the whole operation: each of its commands has its own deadline, and redirections add commands. */
  attempt<T>(operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    return withTimeout(operation(this.client), this.#options.commandTimeoutMs);
  }

  get #connections(): readonly RedisConnection[] {
    return this.#options.cluster.connections(this.#options.role);
  }

  #connectionFor(name: string): RedisConnection | undefined {
    try {
      return this.#options.cluster.connectionFor(this.#options.role, slotOf(name));
    } catch {
      return undefined;
    }
  }
}
