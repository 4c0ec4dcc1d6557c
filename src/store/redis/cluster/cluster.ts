/**
 * A Redis Cluster: its masters, the slots of each, and our connections to them.
 *
 * The slots are read from one node every second, at once after MOVED, and every 200 ms while a master is unavailable. Nodes
 * can have stale slots, so each read begins with another node.
 *
 * Each master has its own connections, push of changes and sessions, exactly as a single Redis has them. Changes made in a
 * slot while it moves are not pushed, so a new assignment of slots invalidates everything.
 */
import { type Clock, systemScheduler } from '../../../base/clock.ts';
import { Periodic } from '../../../base/periodic.ts';
import type { HostAndPort } from '../../../formats/store-address.ts';
import { StoreUnavailableError } from '../../errors.ts';
import { InvalidationListeners } from '../../invalidations.ts';
import type { StoreObserver } from '../../observer.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { InvalidationPush, PushedInvalidations } from '../connection/invalidation-push.ts';
import { addressOf, layoutOf, type SlotMap, slotMapFrom } from '../protocol/hash-slots.ts';
import { describe } from '../protocol/redis-errors.ts';
import { type ChannelRole, ClusterChannel, type ClusterView } from './cluster-channel.ts';

const REFRESH_MS = 1000;
const UNHEALTHY_REFRESH_MS = 200;

/** What a connection is for. `members`: short-lived, to read the slots while no master is connected. */
export type Role = ChannelRole | 'push' | 'members';

interface RedisClusterOptions {
  readonly seeds: readonly HostAndPort[];
  /** Creates a connection without opening it. */
  readonly connection: (role: Role, node: HostAndPort) => RedisConnection;
  readonly push: (records: RedisConnection, subscriber: RedisConnection) => InvalidationPush;
  readonly timeoutsMs: { readonly records: number; readonly background: number };
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** Called whenever the set of usable masters may have changed; with the reason after a failure. */
  readonly onChange: (failure?: string) => void;
}

interface Master {
  readonly address: string;
  readonly host: string;
  readonly records: RedisConnection;
  readonly windows: RedisConnection;
  readonly background: RedisConnection;
  readonly subscriber: RedisConnection;
  readonly push: InvalidationPush;
  /** Resolves after the first attempt to connect. */
  readonly opened: Promise<unknown>;
}

export class RedisCluster implements ClusterView {
  readonly records: ClusterChannel;
  readonly windows: ClusterChannel;
  readonly background: ClusterChannel;
  readonly push: PushedInvalidations;
  readonly #options: RedisClusterOptions;
  readonly #listeners = new InvalidationListeners();
  /** By address, sorted by address. */
  #masters: ReadonlyMap<string, Master> = new Map();
  #slots: (string | undefined)[] = [];
  isComplete = false;
  layout = '';
  lossReason: string | undefined;
  /** Seeds, masters and replicas. */
  #nodes: readonly HostAndPort[];
  #refreshes = 0;
  /** Reads the slots. */
  readonly #refreshing = new Periodic(systemScheduler, async () => {
    await this.#readSlots();
    return this.#healthy ? REFRESH_MS : UNHEALTHY_REFRESH_MS;
  });
  #closed = false;

  constructor(options: RedisClusterOptions) {
    this.#options = options;
    this.#nodes = options.seeds;
    const { clock, observer, timeoutsMs } = options;
    const common = { cluster: this, clock, observer };
    this.records = new ClusterChannel({ ...common, role: 'records', commandTimeoutMs: timeoutsMs.records });
    this.windows = new ClusterChannel({ ...common, role: 'windows' });
    this.background = new ClusterChannel({ ...common, role: 'background', commandTimeoutMs: timeoutsMs.background });
    this.push = this.#combinedPush();
  }

  /** Resolves after the first attempt to connect, successful or not. */
  async open(): Promise<void> {
    await this.#refreshing.run();
    await Promise.all([...this.#masters.values()].map(({ opened }) => opened));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#refreshing.close();
    await Promise.all([...this.#masters.values()].map(closeMaster));
  }

  get #healthy(): boolean {
    return this.records.isUsable() && this.windows.isUsable() && this.background.isUsable() && this.push.connected;
  }

  connections(role: ChannelRole): readonly RedisConnection[] {
    return [...this.#masters.values()].map((master) => master[role]);
  }

  connectionFor(role: ChannelRole, slot: number): RedisConnection {
    return this.#masterOf(slot)[role];
  }

  async connectionToImporter(role: ChannelRole, slot: number, host: string, port: number): Promise<RedisConnection> {
    return (await this.#masterAt(slot, host, port))[role];
  }

  /** Does not wait for the refresh: other nodes may not know about the move yet. */
  async slotMoved(slot: number, host: string, port: number): Promise<void> {
    const { address } = await this.#masterAt(slot, host, port);
    this.#slots[slot] = address;
    void this.#refreshing.run();
  }

  /** Does nothing: a member that is no longer a master names the new one. */
  reconnect(): void {}

  #combinedPush(): PushedInvalidations {
    const cluster = this;
    const pushes = () => [...this.#masters.values()].map(({ push }) => push);
    return {
      get connected() {
        return cluster.isComplete && pushes().every(({ connected }) => connected);
      },
      get provenAtMs() {
        return this.connected ? Math.min(...pushes().map(({ provenAtMs }) => provenAtMs)) : Number.NEGATIVE_INFINITY;
      },
      subscribe: this.#listeners.subscribe,
      get tasks() {
        return pushes().flatMap(({ tasks }) => tasks);
      },
    };
  }

  #masterOf(slot: number): Master {
    const address = this.#slots[slot];
    const master = address === undefined ? undefined : this.#masters.get(address);
    if (master === undefined) {
      throw new StoreUnavailableError(`not connected to Redis: no master is known for slot ${slot}`);
    }
    return master;
  }

  async #masterAt(slot: number, host: string, port: number): Promise<Master> {
    const node = { host: host || this.#masterOf(slot).host, port };
    this.#addMasters([node]);
    const master = this.#masters.get(addressOf(node));
    if (master === undefined) throw new StoreUnavailableError('not connected to Redis: the store is being closed');
    await master.opened;
    return master;
  }

  /** Never rejects. */
  async #readSlots(): Promise<void> {
    this.#refreshes += 1;
    const masters = rotated([...this.#masters.values()], this.#refreshes);
    for (const { host, background } of masters.filter((master) => master.background.isUsable())) {
      if (await this.#readSlotsFrom(background, host)) return;
    }
    for (const node of rotated(this.#nodes, this.#refreshes)) {
      if (this.#closed) return;
      const connection = this.#options.connection('members', node);
      await connection.open();
      const wasRead = await this.#readSlotsFrom(connection, node.host);
      await connection.close();
      if (wasRead) return;
    }
    this.#options.onChange(this.lossReason);
  }

  async #readSlotsFrom(connection: RedisConnection, host: string): Promise<boolean> {
    try {
      this.#apply(slotMapFrom(await connection.attempt((redis) => redis.cluster('SLOTS')), host));
      this.lossReason = undefined;
      return true;
    } catch (error) {
      this.lossReason = describe(error);
      return false;
    }
  }

  #apply(map: SlotMap): void {
    if (this.#closed) return;
    const layout = layoutOf(map);
    this.#slots = [...map.masters];
    this.isComplete = !map.masters.includes(undefined);
    if (layout === this.layout) return;
    const isFirst = this.layout === '';
    this.layout = layout;
    const owners = new Set(map.masters);
    const { seeds } = this.#options;
    this.#nodes = [...new Map([...map.nodes, ...seeds.map((seed) => [addressOf(seed), seed] as const)]).values()];
    this.#addMasters([...map.nodes].flatMap(([address, node]) => (owners.has(address) ? [node] : [])));
    this.#dropMastersExcept(owners);
    if (!isFirst) this.#listeners.emit({ kind: 'all' });
    this.#options.onChange();
  }

  #addMasters(nodes: readonly HostAndPort[]): void {
    if (this.#closed) return;
    const added = nodes.filter((node) => !this.#masters.has(addressOf(node)));
    const masters = [...this.#masters, ...added.map((node) => [addressOf(node), this.#connect(node)] as const)];
    this.#masters = new Map(masters.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** `owners`: addresses of the nodes that own slots. */
  #dropMastersExcept(owners: ReadonlySet<string | undefined>): void {
    const dropped = [...this.#masters].filter(([address]) => !owners.has(address));
    this.#masters = new Map([...this.#masters].filter(([address]) => owners.has(address)));
    for (const [, master] of dropped) void closeMaster(master);
  }

  #connect(node: HostAndPort): Master {
    const { connection, push: newPush } = this.#options;
    const records = connection('records', node);
    const windows = connection('windows', node);
    const subscriber = connection('push', node);
    const background = connection('background', node);
    this.records.client.prepare(records.client);
    this.windows.client.prepare(windows.client);
    this.background.client.prepare(background.client);
    const push = newPush(records, subscriber);
    push.subscribe((invalidation) => this.#listeners.emit(invalidation));
    const opened = Promise.all([records, windows, subscriber, background].map((each) => each.open()));
    return { address: addressOf(node), host: node.host, records, windows, background, subscriber, push, opened };
  }
}

/** Returns the items, rotated by `count`. */
function rotated<Item>(items: readonly Item[], count: number): readonly Item[] {
  const first = items.length === 0 ? 0 : count % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

async function closeMaster({ push, records, windows, subscriber, background }: Master): Promise<void> {
  for (const task of push.tasks) task.close();
  await Promise.all([records, windows, subscriber, background].map((connection) => connection.close()));
}
