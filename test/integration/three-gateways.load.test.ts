/** Three processes, one Redis, one customer: what its limit allows reaches the backend, whoever lets it through. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { bearer } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { type RunningGateway, startProgram } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { readScriptCalls, readWindow, storeTimeMs, writeCustomer, writeKey } from '../support/redis-system.ts';

const LIMIT = 500;
const GATEWAYS = 3;
const REQUESTS_PER_GATEWAY = 1000;
const KEY = 'key-of-acme';
/** Of another customer, whose requests make every part warm. */
const WARM_KEY = 'key-of-warm';

/** The status, or undefined where the connection was lost. */
type Outcome = number | undefined;

interface Caller {
  read(key: string): Promise<Outcome>;
}

interface System {
  readonly redis: RedisServer;
  /** Requests of the customer with the limit that reached the backend. */
  seen(): number;
  readonly gateways: readonly RunningGateway[];
  readonly callers: readonly Caller[];
}

interface Settings {
  /** Of the client to each gateway: so many requests a gateway has at a time. */
  readonly connections: number;
  /** Told of every request that the backend sees. */
  readonly onSeen?: (seen: number) => void;
}

async function start({ connections, onSeen = () => {} }: Settings): Promise<System> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  let seen = 0;
  const backend = await startBackend((req, res) => {
    if (req.headers['x-tollgate-customer'] === 'acme') onSeen(++seen);
    res.end('{"data":[]}');
  });
  onTestFinished(() => backend.close());
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  const anyPort = { host: '127.0.0.1', port: 0 };
  const config = {
    listen: anyPort,
    ops: anyPort,
    // The deadline is not what is tested here: all of it shares a few cores.
    store: { url: redis.url, timeout_ms: 5000 },
    upstream: { urls: [backend.url] },
    logging: { access: 'off' },
  };
  await writeFile(file, stringify(config));
  const gateways = await Promise.all(
    Array.from({ length: GATEWAYS }, () => startProgram({ args: ['--config', file] })),
  );
  await writeCustomer(redis, 'acme', { plan: 'enterprise', requests_per_hour: LIMIT });
  await writeKey(redis, KEY, 'acme');
  await writeCustomer(redis, 'warm', { plan: 'business' });
  await writeKey(redis, WARM_KEY, 'warm');
  const callers = gateways.map((gateway) => openCaller(gateway, connections));
  await flood(callers, connections, WARM_KEY);
  return { redis, gateways, callers, seen: () => seen };
}

function openCaller({ public: url }: RunningGateway, connections: number): Caller {
  const pool = new Pool(url, { connections, pipelining: 1 });
  onTestFinished(() => pool.destroy());
  return {
    async read(key) {
      try {
        const { statusCode, body } = await pool.request({
          path: '/v1/conversations',
          method: 'GET',
          headers: bearer(key),
        });
        await body.dump();
        return statusCode;
      } catch {
        return undefined;
      }
    },
  };
}

/** All requests at once, spread over the callers. */
function flood(callers: readonly Caller[], requestsEach: number, key = KEY): Promise<Outcome[]> {
  return Promise.all(callers.flatMap((caller) => Array.from({ length: requestsEach }, () => caller.read(key))));
}

/** Past the end of the last lease that anybody holds, units that were not used have come back. */
async function untilLeasesLapsed(redis: RedisServer): Promise<void> {
  const left = async () => (await readWindow(redis, 'acme')).holdEndMs + 1000 - (await storeTimeMs(redis));
  await expect.poll(left, { timeout: 10_000 }).toBeLessThan(0);
}

test('of 3,000 concurrent requests over three gateways exactly the limit of 500 reach the backend, in a handful of store calls', async () => {
  const { redis, callers, seen } = await start({ connections: 200 });
  await redis.command('CONFIG', 'RESETSTAT');

  const outcomes = await flood(callers, REQUESTS_PER_GATEWAY);
  expect(outcomes.filter((status) => status === 200)).toHaveLength(LIMIT);
  expect(outcomes.filter((status) => status === 429)).toHaveLength(GATEWAYS * REQUESTS_PER_GATEWAY - LIMIT);
  expect(seen()).toBe(LIMIT);
  expect(await readScriptCalls(redis)).toBeLessThanOrEqual(30);
  expect(await readWindow(redis, 'acme')).toMatchObject({ used: LIMIT });
});

test('when a gateway is killed under load, at most the limit reaches the backend, and at least the limit minus its open lease', async () => {
  const connections = 50;
  // What waited for a unit, an eighth of the limit ahead of need, and as much again of the lease that comes next.
  const openLease = connections + 2 * Math.floor(LIMIT / 8);
  const { redis, gateways, callers, seen } = await start({
    connections,
    onSeen: (count) => count === LIMIT / 4 && gateways[0]?.signal('SIGKILL'),
  });

  const outcomes = await flood(callers, REQUESTS_PER_GATEWAY);
  expect(outcomes).toContain(undefined);
  await untilLeasesLapsed(redis);

  await flood(callers.slice(1), LIMIT);
  expect(await readWindow(redis, 'acme')).toMatchObject({ used: LIMIT });
  expect(seen()).toBeLessThanOrEqual(LIMIT);
  expect(seen()).toBeGreaterThanOrEqual(LIMIT - openLease);
});
