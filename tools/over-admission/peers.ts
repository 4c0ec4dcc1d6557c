/** The gateways of the benchmark, two instances each, on a Redis and a clock of their own. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createCustomer, writeCustomers } from '../../bench/customers.ts';
import { freePort } from '../../bench/free-port.ts';
import { type Peer, type PeerSurroundings, startPeers } from '../../bench/peers.ts';
import type { Programs } from '../../bench/programs.ts';
import { isListening, LIST_PATH } from '../../bench/surroundings.ts';
import { Workspace } from '../../bench/workspace.ts';
import { sha256Hex } from '../../src/formats/api-key.ts';
import { DAY_MS, HOUR_MS } from '../../src/store/usage-history.ts';
import { attack, BEGIN_LATE_MS, type Fault, type Finding } from './attacks.ts';
import { startCountingBackend } from './counting-backend.ts';
import { createShiftedClock } from './shifted-clock.ts';

const PRODUCTION = new URL('../../config/gateway.yaml', import.meta.url);
const INSTANCES = 2;
/** After the clock was set ahead, connections that were idle for too long are closed, and instances announce themselves. */
const SETTLE_MS = 1000;
/** Tollgate announces its instances every 10 s: two announcements later, each counts the others. */
const ANNOUNCED_MS = 21_000;
/** Half as many as an attack has to each instance: the others wait, with units that were granted to them. */
const FEW_CONNECTIONS = 'max_connections: 16\n  max_connections_per_customer: 16';
const UNPINNED = { measured: [], loading: [], remark: '' };

interface Subject {
  readonly name: string;
  readonly peer: Peer['name'];
  readonly onError?: 'deny' | 'local';
  /** Left out: the customer's hour. Its customer may have more than a key, and an hour more than a day. */
  readonly limitOf?: 'key' | 'day';
}

export const SUBJECTS: readonly Subject[] = [
  { name: 'Tollgate, `on_error: deny`', peer: 'tollgate', onError: 'deny' },
  { name: 'Tollgate, `on_error: local`', peer: 'tollgate', onError: 'local' },
  { name: 'Tollgate, limit of a key, `on_error: deny`', peer: 'tollgate', onError: 'deny', limitOf: 'key' },
  { name: 'Tollgate, limit of a day, `on_error: deny`', peer: 'tollgate', onError: 'deny', limitOf: 'day' },
  { name: 'nginx and Lua', peer: 'nginx-lua' },
  { name: 'Fastify, @fastify/rate-limit', peer: 'fastify' },
  { name: 'Express, rate-limiter-flexible', peer: 'express-hpm' },
];

/** Attacks one gateway. Its hour passes by a clock that is set ahead. @throws Error when it cannot be started here. */
export async function attackPeer(
  { peer, onError, limitOf }: Subject,
  programs: Programs,
  limit: number,
): Promise<Finding[]> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(new Workspace(undefined)).folder;
  const clock = createShiftedClock(folder);
  const workspace = opened.use(new Workspace(process.env.PATH, clock.env));
  const backend = opened.use(await startCountingBackend(0, clock.nowMs));
  const redis = await startRedis(workspace, programs);
  opened.defer(() => redis.client.disconnect());
  const upstream = { port: backend.port, origin: `http://127.0.0.1:${backend.port}` };
  const surroundings: PeerSurroundings = { workspace, programs, pinning: UNPINNED, upstream, redis, limit };
  await redis.client.set('tollgate:installed', 'init-over-admission');
  const config = join(folder, 'tollgate.yaml');
  const production = readFileSync(PRODUCTION, 'utf8');
  writeFileSync(
    config,
    production
      .replace('on_error: local', `on_error: ${onError}`)
      .replace('max_connections: 256', FEW_CONNECTIONS)
      .replace('enterprise: {', `enterprise: {${limitOf === 'day' ? ' period: { per: day, requests: custom },' : ''}`),
  );
  const peers: Peer[] = [];
  for (let i = 0; i < INSTANCES; i += 1) {
    const { peers: started, leftOut, problems } = await startPeers([peer], surroundings, { config });
    const [instance] = started;
    if (instance === undefined) throw new Error([...leftOut, ...problems].join('\n'));
    peers.push(instance);
  }
  let customers = 0;
  let beganMs = 0;
  return await attack({
    origins: peers.map(({ origin }) => origin),
    path: LIST_PATH,
    async headers() {
      // @fastify/rate-limit counts for each key, so each attack has a key of its own.
      const customer = createCustomer(`attacker-${++customers}`, limitOf ? 10 * limit : limit);
      const { id, key } = customer;
      await writeCustomers(redis.client, [customer]);
      if (limitOf === 'key') await redis.client.hset(`tollgate:key:${sha256Hex(key)}`, { requests_per_hour: limit });
      if (limitOf === 'day') {
        beganMs = HOUR_MS * Math.ceil(clock.nowMs() / HOUR_MS);
        clock.ahead(beganMs - clock.nowMs());
        const quota = { period_requests: limit, period_anchor: new Date(beganMs).toISOString() };
        await redis.client.hset(`tollgate:customer:{${id}}`, quota);
      }
      await setTimeout(SETTLE_MS);
      return { authorization: `Bearer ${customer.key}` };
    },
    limit,
    windowMs: limitOf === 'day' ? DAY_MS : HOUR_MS,
    beganMs: limitOf === 'day' ? () => beganMs : undefined,
    backend,
    async pass(ms) {
      // No request and no lease is open: nothing but the clock changes.
      await setTimeout(SETTLE_MS);
      clock.ahead(Math.max(0, ms - 2 * SETTLE_MS));
      await setTimeout(SETTLE_MS);
    },
    faults: redis.faults,
    settled: () => setTimeout(ANNOUNCED_MS),
    slow: redis.faults[0]?.begin,
    beginLateMs: BEGIN_LATE_MS,
  });
}

/** A Redis that loses nothing when it is killed: every write is on disk before it is answered. */
async function startRedis(workspace: Workspace, { redisServer }: Programs) {
  const port = await freePort();
  const start = () =>
    workspace.start({
      name: 'redis',
      command: [
        redisServer,
        ...['--port', String(port), '--bind', '127.0.0.1', '--save', ''],
        ...['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'],
      ],
      isReady: () => isListening(port),
    });
  let { pid } = await start();
  const client = new Redis(port, '127.0.0.1', { protocol: 2, disableClientInfo: true });
  client.on('error', () => undefined);
  const faults: Fault[] = [
    {
      name: 'Redis is stopped for a while',
      async begin() {
        process.kill(pid, 'SIGSTOP');
        return async () => void process.kill(pid, 'SIGCONT');
      },
    },
    {
      name: 'Redis is killed and started with its data',
      async begin() {
        process.kill(pid, 'SIGKILL');
        return async () => {
          ({ pid } = await start());
        };
      },
    },
    {
      name: 'connections to Redis are reset again and again',
      async begin() {
        const reset = setInterval(() => void client.call('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => {}), 50);
        return async () => clearInterval(reset);
      },
    },
  ];
  return { port, url: `redis://127.0.0.1:${port}`, client, faults };
}
