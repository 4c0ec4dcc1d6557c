/** A real Redis Cluster of three masters with a replica each, for tests. */
import { slotOf } from '../../src/store/redis/protocol/hash-slots.ts';
import { eventually } from './eventually.ts';
import { type RedisServer, type ServerTls, startRedis } from './redis-server.ts';

const MASTERS = 3;
const SLOTS = 16_384;
/** First, last, master and replica. */
const RANGE_LENGTH = 4;

export interface RedisClusterServers {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** Who holds the slot of this name now. */
  holderOf(name: string): Promise<RedisServer>;
  /** The replica of the one that holds the slot of this name. */
  replicaOf(name: string): Promise<RedisServer>;
  /** Runs one command on whoever holds the name, its first argument. */
  command(command: string, name: string, ...args: (string | number)[]): Promise<unknown>;
  /** Runs one command on every master. */
  onMasters(...command: [string, ...(string | number)[]]): Promise<unknown[]>;
  /** Lets another master have the slot of this name, with what is in it, step by step. */
  moveSlot(name: string, steps?: MoveSteps): Promise<void>;
  /** Starts a master without slots, which every node knows. */
  addMaster(): Promise<RedisServer>;
  /** Stops a master that has no slots any more, and makes the others forget it. */
  removeMaster(master: RedisServer): Promise<void>;
  /** Resolves once nothing of a fault is left. */
  complete(): Promise<void>;
  stop(): Promise<void>;
}

interface MoveSteps {
  /** Where to; left out: any other master. Nothing happens to a slot that is there. */
  readonly target?: RedisServer;
  /** Called while the slot is being moved, before any name was. */
  readonly begun?: () => Promise<void>;
  /** Called after the names, before the slot. */
  readonly emptied?: () => Promise<void>;
}

export interface ClusterSettings {
  /** All of them speak TLS and nothing else. */
  readonly tls?: ServerTls;
  /** After so long a silent member counts as lost, and its replica takes its place. */
  readonly nodeTimeoutMs?: number;
}

export async function startRedisCluster({
  tls,
  nodeTimeoutMs = 1000,
}: ClusterSettings = {}): Promise<RedisClusterServers> {
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)];
  // A replica is not listed before something was replicated: the first ping of its master, by default after ten seconds.
  settings.push('--repl-ping-replica-period', '1', '--repl-diskless-sync-delay', '0');
  if (tls !== undefined) settings.push('--tls-cluster', 'yes');
  const start = (more: readonly string[] = []) =>
    startRedis({
      args: [...settings, ...more],
      ...(tls !== undefined && { tls }),
    });
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, () => start()));
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    await form(nodes);
  } catch (error) {
    await stop();
    throw error;
  }

  const running = async (): Promise<RedisServer> => {
    for (const node of nodes) if (await isWell(node)) return node;
    throw new Error('no member of the cluster is well');
  };
  const slots = async () => (await (await running()).command('CLUSTER', 'SLOTS')) as SlotRange[];
  const at = (port: number | undefined): RedisServer => {
    const found = nodes.find((node) => node.port === port);
    if (found === undefined) throw new Error('no member of the cluster holds this');
    return found;
  };
  const rangeOf = async (name: string) => {
    const slot = slotOf(name);
    return (await slots()).find(([first, last]) => first <= slot && slot <= last);
  };
  const holderOf = async (name: string) => at((await rangeOf(name))?.[2]?.[1]);

  return {
    url: `redis${tls === undefined ? '' : 's'}+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    holderOf,
    replicaOf: async (name) => at((await rangeOf(name))?.[3]?.[1]),
    command: async (command, name, ...rest) => (await holderOf(name)).command(command, name, ...rest),
    async onMasters(...command) {
      const ports = new Set((await slots()).map(([, , [, port]]) => port));
      return Promise.all([...ports].map((port) => at(port).command(...command)));
    },
    async moveSlot(name, { begun, emptied, target } = {}) {
      const slot = slotOf(name);
      const from = await holderOf(name);
      const others = (await slots()).map(([, , [, port]]) => at(port)).filter((node) => node !== from);
      const to = target ?? others[0] ?? from;
      if (to === from) return;
      await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from));
      await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to));
      await begun?.();
      for (;;) {
        const names = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
        if (names.length === 0) break;
        await from.command('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...names);
      }
      await emptied?.();
      // All masters are told, as redis-cli does it: one that learns it by hearsay may doubt it.
      for (const node of new Set([to, from, ...others])) {
        await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
      }
      for (const node of nodes) {
        await eventually('every member knows where the slot went', async () => {
          const ranges = (await node.command('CLUSTER', 'SLOTS')) as SlotRange[];
          const isKnown = ranges.some(([first, last, [, port]]) => first <= slot && slot <= last && port === to.port);
          // Hearsay of the one before may win where both claim it in the same epoch: a newer one settles that.
          if (!isKnown) await to.command('CLUSTER', 'BUMPEPOCH');
          if (!isKnown && others.includes(node)) await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
          return isKnown;
        });
      }
    },
    async addMaster() {
      // Otherwise it becomes a replica with the loss of its last slot.
      const added = await start(['--cluster-allow-replica-migration', 'no']);
      const known = await running();
      nodes.push(added);
      await added.command('CLUSTER', 'MEET', '127.0.0.1', known.port);
      await eventually('every node knows the new master', () => allKnown(nodes));
      await eventually('the new master knows the slots', () => isWell(added));
      return added;
    },
    async removeMaster(master) {
      const id = await idOf(master);
      nodes.splice(nodes.indexOf(master), 1);
      await master.stop();
      for (const node of nodes) await node.command('CLUSTER', 'FORGET', id);
    },
    complete: () => complete(nodes),
    stop,
  };
}

type SlotRange = [first: number, last: number, master: [host: string, port: number], ...replicas: [string, number][]];

async function form(nodes: readonly RedisServer[]): Promise<void> {
  const [first] = nodes;
  if (first === undefined) throw new Error('a cluster needs members');
  const share = Math.ceil(SLOTS / MASTERS);
  for (const [index, node] of nodes.entries()) {
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    if (index >= MASTERS) continue;
    const slots = Array.from({ length: Math.min(share, SLOTS - index * share) }, (_, i) => index * share + i);
    await node.command('CLUSTER', 'ADDSLOTS', ...slots);
  }
  for (const node of nodes.slice(1)) await node.command('CLUSTER', 'MEET', '127.0.0.1', first.port);
  await eventually('every node knows all others', () => allKnown(nodes));
  for (const [index, node] of nodes.entries()) {
    const master = nodes[index - MASTERS];
    if (master !== undefined) await replicate(node, master);
  }
  await complete(nodes);
}

/** Every master has a replica that is in step, and every member sees it so: a gateway may ask any. */
async function complete(nodes: readonly RedisServer[]): Promise<void> {
  for (const node of nodes) {
    await eventually('the cluster is complete', async () => {
      const ranges = (await node.command('CLUSTER', 'SLOTS')) as SlotRange[];
      const info = fieldOf(String(await node.command('INFO', 'replication')), 'master_link_status');
      return ranges.every((range) => range.length === RANGE_LENGTH) && info !== 'down' && (await isWell(node));
    });
  }
}

async function replicate(node: RedisServer, master: RedisServer): Promise<void> {
  const id = await idOf(master);
  await eventually('the master is known', async () => (await node.command('CLUSTER', 'REPLICATE', id)) === 'OK');
  await eventually('the replica is in step', async () => {
    return fieldOf(String(await node.command('INFO', 'replication')), 'master_link_status') === 'up';
  });
}

async function idOf(node: RedisServer): Promise<string> {
  return String(await node.command('CLUSTER', 'MYID'));
}

async function isWell(node: RedisServer): Promise<boolean> {
  const state = await infoField(node, 'CLUSTER', 'cluster_state').catch(() => undefined);
  return state === 'ok';
}

async function allKnown(nodes: readonly RedisServer[]): Promise<boolean> {
  const counts = await Promise.all(nodes.map((node) => infoField(node, 'CLUSTER', 'cluster_known_nodes')));
  return counts.every((count) => count === String(nodes.length));
}

async function infoField(node: RedisServer, command: string, name: string): Promise<string | undefined> {
  return fieldOf(String(await node.command(command, 'INFO')), name);
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
