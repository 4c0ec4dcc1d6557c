/**
 * A channel over one connection to every master of a cluster, all with the same role. Its client sends each command to the
 * master that holds its first name.
 *
 * A command is sent again only after a node replied that it did not run it (MOVED, ASK, TRYAGAIN). Why this is not ioredis's
 * cluster client: docs/dev/decisions/0011-routing-in-a-cluster-is-our-own.md.
 */
import { setTimeout } from 'node:timers/promises';
import { Command as RedisCommand } from 'ioredis';
import type { Clock } from '../../../base/clock.ts';
import { StoreUnavailableError } from '../../errors.ts';
import type { StoreObserver, StoreOp } from '../../observer.ts';
import type { RedisChannel, ScanPlan } from '../connection/channel.ts';
import { type BatchReply, type Command, RedisClient } from '../connection/client.ts';
import { observed, type RedisConnection, withTimeout } from '../connection/connection.ts';
import { digestOf, ownSlotsFrom, type Redirection, redirectionFrom, slotOf } from '../protocol/hash-slots.ts';

/** A slot can move again while a command is redirected. */
const MAX_REDIRECTIONS = 5;
/** Wait after TRYAGAIN: the names of a command are on two masters while their slot migrates. */
const TRY_AGAIN_MS = 20;

/** What the connections to each master are for. */
export type ChannelRole = 'records' | 'windows' | 'background';

/** A cluster's slots as known now, and the connections to its masters. */
export interface ClusterView {
  /** Every slot has a master. */
  readonly isComplete: boolean;
  /** A digest of which master holds which slots. */
  readonly layout: string;
  /** Why the slots could not be read, for operators. */
  readonly lossReason: string | undefined;
  /** Returns the connections to all masters, sorted by address. */
  connections(role: ChannelRole): readonly RedisConnection[];
  /** Returns the connection to the slot's master. @throws StoreUnavailableError when no master is known. */
  connectionFor(role: ChannelRole, slot: number): RedisConnection;
  /**
   * Resolves to the connection to the node that imports the slot, after the first attempt to connect. An empty host stands
   * for the host of the slot's master.
   */
  connectionToImporter(role: ChannelRole, slot: number, host: string, port: number): Promise<RedisConnection>;
  /** Assigns the slot to another master. Resolves after the first attempt to connect. Empty host: as above. */
  slotMoved(slot: number, host: string, port: number): Promise<void>;
}

interface Script {
  readonly lua: string;
  /** Undefined: the first argument of each call. */
  readonly numberOfKeys?: number;
}

type ClusterCall<T> = (redis: RedisClient) => Promise<T>;

/** The client of a {@link ClusterChannel}. */
export class RoutedClient extends RedisClient {
  readonly #cluster: ClusterView;
  readonly #role: ChannelRole;
  readonly #scripts = new Map<string, Script>();

  constructor(cluster: ClusterView, role: ChannelRole) {
    // This client only provides the methods; it never connects.
    super({ lazyConnect: true, protocol: 2, enableOfflineQueue: false });
    this.#cluster = cluster;
    this.#role = role;
  }

  /** Defines the scripts on the client of a new connection. */
  prepare(redis: RedisClient): void {
    for (const [name, script] of this.#scripts) redis.defineCommand(name, script);
  }

  override defineCommand(name: string, script: Script): void {
    this.#scripts.set(name, script);
    const { lua, numberOfKeys } = script;
    const run = (...args: (string | number)[]) => {
      const flat = args.flat();
      const [count = 0, ...rest] = numberOfKeys === undefined ? flat : [numberOfKeys, ...flat];
      return this.#send(
        String(rest[0]),
        (redis) => defined(redis, name, flat),
        // EVAL, not EVALSHA: ioredis would retry a missing script without ASKING.
        (redis) => redis.eval(lua, count, ...rest),
      );
    };
    Object.defineProperty(this, name, { value: run, configurable: true });
  }

  /** Every method of ioredis sends its command through this one. */
  override sendCommand(command: RedisCommand): Promise<unknown> {
    const [key] = command.getKeys();
    if (key === undefined)
      return Promise.reject(new Error(`${command.name} has no name, so no master can be chosen for it`));
    const { name, args } = command;
    const call: ClusterCall<unknown> = async (redis) =>
      redis.sendCommand(new RedisCommand(name, [...args], { replyEncoding: 'utf8' }));
    return this.#send(String(key), call, call);
  }

  /** Keeps the order of commands per master. An unavailable master fails only its own commands. */
  override async batch(commands: readonly Command[]): Promise<readonly BatchReply[]> {
    const replies: BatchReply[] = new Array(commands.length);
    const groups = new Map<RedisConnection, number[]>();
    for (const [index, command] of commands.entries()) {
      try {
        const connection = this.#connectionFor(slotOf(nameOf(command)));
        const group = groups.get(connection);
        if (group === undefined) groups.set(connection, [index]);
        else group.push(index);
      } catch (error) {
        replies[index] = failed(error);
      }
    }
    const send = async ([connection, indices]: [RedisConnection, number[]]) => {
      const own = commands.filter((_, index) => indices.includes(index));
      const ownReplies = await connection
        .attempt((redis) => redis.batch(own))
        .catch((error: unknown) => own.map(() => failed(error)));
      for (const [i, index] of indices.entries()) replies[index] = ownReplies[i] ?? failed(new Error('no reply'));
    };
    await Promise.all([...groups].map(send));
    const redirected = commands.map(async (command, index) => {
      if (redirectionFrom(replies[index]?.[0]) === undefined) return;
      const call: ClusterCall<unknown> = (redis) => redis.call(...(command as [string, ...(string | number)[]]));
      replies[index] = await this.#send(nameOf(command), call, call).then((reply) => [null, reply] as const, failed);
    });
    await Promise.all(redirected);
    return replies;
  }

  #connectionFor(slot: number): RedisConnection {
    return this.#cluster.connectionFor(this.#role, slot);
  }

  async #send<T>(name: string, call: ClusterCall<T>, askingCall: ClusterCall<T>): Promise<T> {
    const slot = slotOf(name);
    let send = () => this.#connectionFor(slot).attempt(call);
    for (let redirections = 0; ; redirections += 1) {
      try {
        return await send();
      } catch (error) {
        const redirection = redirectionFrom(error);
        if (redirection === undefined || redirections === MAX_REDIRECTIONS) throw error;
        send = await this.#redirected(redirection, slot, call, askingCall);
      }
    }
  }

  /** Resolves to how to send the command again. */
  async #redirected<T>(redirection: Redirection, slot: number, call: ClusterCall<T>, askingCall: ClusterCall<T>) {
    if (redirection.kind === 'ask') {
      const importer = await this.#cluster.connectionToImporter(this.#role, slot, redirection.host, redirection.port);
      return () =>
        importer.attempt(async (redis) => {
          const [, reply] = await Promise.all([redis.asking(), askingCall(redis)]);
          return reply;
        });
    }
    if (redirection.kind === 'moved') await this.#cluster.slotMoved(slot, redirection.host, redirection.port);
    else await setTimeout(TRY_AGAIN_MS);
    return () => this.#connectionFor(slot).attempt(call);
  }
}

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

/** The name is the first argument of every command that is sent in a batch. */
function nameOf([, name]: Command): string {
  return String(name);
}

function failed(error: unknown): BatchReply {
  return [error instanceof Error ? error : new Error(String(error)), undefined];
}

function defined(redis: RedisClient, name: string, args: readonly (string | number)[]): Promise<unknown> {
  const script: unknown = Reflect.get(redis, name);
  if (typeof script !== 'function') throw new Error(`the script ${name} is not defined`);
  return Reflect.apply(script, redis, [...args]);
}
