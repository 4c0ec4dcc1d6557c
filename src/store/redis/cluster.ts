/**
 * A Redis Cluster: which masters there are and which slots each holds, and our connections to each of them.
 *
 * A member is asked for the slots every second, at once when another one says that a slot has moved, and more often while
 * a master is missing. Any member may know less than another, so while something is wrong each is asked in turn.
 *
 * Each master has its own connections, its own push of changes and its own sessions, all as a single Redis has them. When
 * a slot moves, nobody has been told of what was changed in it meanwhile: that is an invalidation of everything.
 */
import type { Clock } from '../../clock.ts';
import type { HostAndPort } from '../../store-address.ts';
import { InvalidationListeners } from '../invalidation-listeners.ts';
import { type Invalidations, type StoreObserver, StoreUnavailableError } from '../store.ts';
import { ClusterChannel } from './cluster-channel.ts';
import { addressOf, layoutOf, type SlotMap, slotMapFrom } from './cluster-slots.ts';
import { describe, type RedisConnection } from './connection.ts';
import type { InvalidationPush } from './invalidation-push.ts';

const LOOK_MS = 1000;
const LOOK_AGAIN_MS = 200;

/** `members`: for asking who is there. */
export type Role = 'records' | 'windows' | 'push' | 'walks' | 'members';

export interface RedisClusterOptions {
  readonly seeds: readonly HostAndPort[];
  /** A connection that is not open yet. */
  readonly connection: (role: Role, member: HostAndPort) => RedisConnection;
  readonly push: (records: RedisConnection, subscriber: RedisConnection) => InvalidationPush;
  readonly timeoutsMs: { readonly records: number; readonly walks: number };
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** Called whenever what can be reached may have changed, and with the reason whenever something failed. */
  readonly onChange: (failure?: string) => void;
}

interface Master {
  readonly host: string;
  readonly records: RedisConnection;
  readonly windows: RedisConnection;
  readonly walks: RedisConnection;
  readonly subscriber: RedisConnection;
  readonly push: InvalidationPush;
  /** Resolves after the first attempt to connect. */
  readonly opened: Promise<unknown>;
}

export class RedisCluster {
  readonly records: ClusterChannel;
  readonly windows: ClusterChannel;
  readonly walks: ClusterChannel;
  readonly push: Invalidations & Pick<InvalidationPush, 'tend' | 'settled' | 'close'>;
  readonly #options: RedisClusterOptions;
  readonly #listeners = new InvalidationListeners();
  /** By address, in the order of the addresses. */
  #masters: ReadonlyMap<string, Master> = new Map();
  #slots: (string | undefined)[] = [];
  /** Every slot has a master. */
  #whole = false;
  #members: readonly HostAndPort[];
  #layout = '';
  #lossReason: string | undefined;
  #turn = 0;
  #looking: Promise<void> | undefined;
  #nextLook: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: RedisClusterOptions) {
    this.#options = options;
    this.#members = options.seeds;
    const { timeoutsMs } = options;
    this.records = this.#channel('records', timeoutsMs.records);
    this.windows = this.#channel('windows');
    this.walks = this.#channel('walks', timeoutsMs.walks);
    this.push = this.#pushOfAll();
  }

  /** Settles with the first attempt, whatever came of it. */
  async open(): Promise<void> {
    await this.#look();
    await Promise.all([...this.#masters.values()].map(({ opened }) => opened));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#nextLook);
    await this.#looking;
    await Promise.all([...this.#masters.values()].map(closeMaster));
  }

  get #healthy(): boolean {
    return this.records.isUsable() && this.windows.isUsable() && this.walks.isUsable() && this.push.connected;
  }

  #channel(role: 'records' | 'windows' | 'walks', commandTimeoutMs?: number): ClusterChannel {
    const cluster = this;
    const { clock, observer } = this.#options;
    return new ClusterChannel({
      clock,
      observer,
      ...(commandTimeoutMs !== undefined && { commandTimeoutMs }),
      members: {
        get whole() {
          return cluster.#whole;
        },
        get layout() {
          return cluster.#layout;
        },
        get lossReason() {
          return cluster.#lossReason;
        },
        get masters() {
          return [...cluster.#masters.values()].map((master) => master[role]);
        },
        holderOf: (slot) => this.#holderOf(slot)[role],
        connectionTo: async (slot, host, port) => (await this.#masterAt(slot, host, port))[role],
        moved: (slot, host, port) => this.#moved(slot, host, port),
      },
    });
  }

  #pushOfAll(): RedisCluster['push'] {
    const cluster = this;
    const pushes = () => [...this.#masters.values()].map(({ push }) => push);
    return {
      get connected() {
        return cluster.#whole && pushes().every(({ connected }) => connected);
      },
      subscribe: this.#listeners.subscribe,
      tend: () => {
        for (const push of pushes()) push.tend();
      },
      settled: async () => {
        await Promise.all(pushes().map((push) => push.settled()));
      },
      close: () => {
        for (const push of pushes()) push.close();
      },
    };
  }

  #holderOf(slot: number): Master {
    const address = this.#slots[slot];
    const master = address === undefined ? undefined : this.#masters.get(address);
    if (master === undefined) {
      throw new StoreUnavailableError(`not connected to Redis: no master is known for slot ${slot}`);
    }
    return master;
  }

  async #masterAt(slot: number, host: string, port: number): Promise<Master> {
    const member = { host: host || this.#holderOf(slot).host, port };
    if (!this.#masters.has(addressOf(member))) this.#addMasters([member]);
    const master = this.#masters.get(addressOf(member));
    if (master === undefined) throw new StoreUnavailableError('not connected to Redis: the cluster is being left');
    await master.opened;
    return master;
  }

  /** The others are told of the new holder by its first commands; this one knows, and asks for the rest. */
  async #moved(slot: number, host: string, port: number): Promise<void> {
    const member = { host: host || this.#holderOf(slot).host, port };
    await this.#masterAt(slot, member.host, port);
    this.#slots[slot] = addressOf(member);
    void this.#look();
  }

  /** One at a time. Never rejects. */
  #look(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#looking ??= this.#ask().finally(() => {
      this.#looking = undefined;
      clearTimeout(this.#nextLook);
      if (this.#closed) return;
      this.#nextLook = setTimeout(() => void this.#look(), this.#healthy ? LOOK_MS : LOOK_AGAIN_MS).unref();
    });
    return this.#looking;
  }

  async #ask(): Promise<void> {
    this.#turn += 1;
    const masters = inTurn([...this.#masters.values()], this.#turn);
    for (const { host, walks } of masters.filter(({ walks: connection }) => connection.usable)) {
      if (await this.#askOn(walks, host)) return;
    }
    for (const member of inTurn(this.#members, this.#turn)) {
      if (this.#closed) return;
      const connection = this.#options.connection('members', member);
      await connection.open();
      const answered = await this.#askOn(connection, member.host);
      await connection.close();
      if (answered) return;
    }
    this.#options.onChange(this.#lossReason);
  }

  async #askOn(connection: RedisConnection, host: string): Promise<boolean> {
    try {
      this.#learn(slotMapFrom(await connection.attempt((redis) => redis.cluster('SLOTS')), host));
      this.#lossReason = undefined;
      return true;
    } catch (error) {
      this.#lossReason = describe(error);
      return false;
    }
  }

  #learn(map: SlotMap): void {
    if (this.#closed) return;
    const layout = layoutOf(map);
    this.#slots = [...map.masters];
    this.#whole = !map.masters.includes(undefined);
    if (layout === this.#layout) return;
    const isFirst = this.#layout === '';
    this.#layout = layout;
    const holders = new Set(map.masters);
    const { seeds } = this.#options;
    this.#members = [...new Map([...map.members, ...seeds.map((seed) => [addressOf(seed), seed] as const)]).values()];
    this.#addMasters([...map.members].flatMap(([address, member]) => (holders.has(address) ? [member] : [])));
    this.#dropMasters(holders);
    if (!isFirst) this.#listeners.emit({ kind: 'all' });
    this.#options.onChange();
  }

  #addMasters(members: readonly HostAndPort[]): void {
    if (this.#closed) return;
    const added = members.filter((member) => !this.#masters.has(addressOf(member)));
    const masters = [...this.#masters, ...added.map((member) => [addressOf(member), this.#connect(member)] as const)];
    this.#masters = new Map(masters.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  #dropMasters(holders: ReadonlySet<string | undefined>): void {
    const gone = [...this.#masters].filter(([address]) => !holders.has(address));
    this.#masters = new Map([...this.#masters].filter(([address]) => holders.has(address)));
    for (const [, master] of gone) void closeMaster(master);
  }

  #connect(member: HostAndPort): Master {
    const { connection, push: newPush } = this.#options;
    const records = connection('records', member);
    const windows = connection('windows', member);
    const subscriber = connection('push', member);
    const walks = connection('walks', member);
    this.records.client.prepare(records.client);
    this.windows.client.prepare(windows.client);
    this.walks.client.prepare(walks.client);
    const push = newPush(records, subscriber);
    push.subscribe((invalidation) => this.#listeners.emit(invalidation));
    const opened = Promise.all([records, windows, subscriber, walks].map((each) => each.open()));
    return { host: member.host, records, windows, walks, subscriber, push, opened };
  }
}

function inTurn<Item>(items: readonly Item[], turn: number): readonly Item[] {
  const first = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

async function closeMaster({ push, records, windows, subscriber, walks }: Master): Promise<void> {
  push.close();
  await Promise.all([records, windows, subscriber, walks].map((connection) => connection.close()));
}
