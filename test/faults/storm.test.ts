/**
 * Gateway processes that are killed, stopped and started again, connections to Redis that are reset and slow, a backend
 * that is too slow for its connections, and customers with small limits of an hour and a day. Traces are replayed after each
 * test of this suite.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { Dice } from '../../tools/simulator/dice.ts';
import { bearer } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { type RunningGateway, startProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';
import { writeCustomer, writeKey } from '../support/redis-system.ts';
import { TRACE_FOLDER } from '../support/traces/environment.ts';
import { readTraces } from '../support/traces/events.ts';

const GATEWAYS = 3;
const CUSTOMERS = 8;
const STEPS = 12;
const CLIENTS = 16;
const PATHS = ['conversations', 'search'];
/** Both at one instant: gateways go on refunding. */
const UNITS_COUNTED = `
  local function sum(names, field)
    local units = 0
    for _, name in ipairs(redis.call('KEYS', names)) do
      local entries = redis.call('HGETALL', name)
      for i = 1, #entries, 2 do
        if string.match(entries[i], field) then units = units + entries[i + 1] end
      end
    end
    return units
  end
  return { sum('tollgate:usage:' .. ARGV[1] .. ':*', '^%d+$'), sum('tollgate:period:' .. ARGV[1], '^d%d+$') }`;
const PATIENCE = { timeout: 60_000, interval: 50 };

test.each([1, 2])(
  'in a storm of kills, stops, resets and delays (seed %i), no rule of the quota is broken, each request at the backend is in a trace, and each day counts its hours',
  async (seed) => {
    const dice = new Dice(seed);
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const proxy = await startFaultProxy(redis);
    const seen = new Map<string, number>();
    const backend = await startBackend((req, res) => {
      const customer = String(req.headers['x-tollgate-customer']);
      seen.set(customer, (seen.get(customer) ?? 0) + 1);
      // Requests wait for a connection, and some begin late.
      void setTimeout(dice.chance(0.1) ? 800 : 5).then(() => res.end('{"data":[]}'));
    });
    onTestFinished(() => backend.close());

    const customers = Array.from({ length: CUSTOMERS }, (_, i) => ({
      id: `customer-${i}`,
      limit: Math.floor(dice.between(1, 400)),
      daily: Math.floor(dice.between(1, 400)),
    }));
    for (const { id, limit, daily } of customers) {
      await writeCustomer(redis, id, { plan: 'enterprise', requests_per_hour: limit, period_requests: daily });
      await writeKey(redis, `key-of-${id}`, id);
    }
    const start = await gatewayStarter(`redis://127.0.0.1:${proxy.port}`, backend.url);
    const gateways = await Promise.all(Array.from({ length: GATEWAYS }, start));

    const read = async (gateway: RunningGateway | undefined, id: string, path = PATHS[0]) => {
      const response = await fetch(`${gateway?.public}/v1/${path}`, { headers: bearer(`key-of-${id}`) });
      await response.arrayBuffer();
      return response.status;
    };
    // Known keys are served in the storm, too.
    for (const gateway of gateways) {
      for (const { id } of customers) await expect.poll(() => read(gateway, id), PATIENCE).toBeOneOf([200, 429]);
    }

    let isOver = false;
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      while (!isOver) {
        const { id } = customers[Math.floor(dice.next() * customers.length)] ?? { id: '' };
        // A gateway that is killed responds to nobody.
        const path = PATHS[Math.floor(dice.next() * PATHS.length)];
        await read(gateways[client % GATEWAYS], id, path).catch(() => undefined);
        await setTimeout(dice.between(0, 20));
      }
    });
    for (let step = 0; step < STEPS; step += 1) {
      await setTimeout(dice.between(50, 400));
      const index = Math.floor(dice.next() * GATEWAYS);
      const gateway = gateways[index];
      const event = dice.next();
      if (event < 0.15) {
        gateway?.signal('SIGKILL');
        await gateway?.finished;
        gateways[index] = await start();
      } else if (event < 0.4) {
        // Longer than a hold at times.
        gateway?.signal('SIGSTOP');
        await setTimeout(dice.between(100, 2500));
        gateway?.signal('SIGCONT');
      } else if (event < 0.6) proxy.cut();
      else if (event < 0.8) proxy.delay(dice.between(0, 400));
      else proxy.delay(0);
    }
    isOver = true;
    await Promise.all(clients);

    const traces = readTraces(process.env[TRACE_FOLDER] ?? '');
    const begun = traces.filter(({ event }) => event === 'begun');
    for (const { id } of customers) {
      const [hours, days] = (await redis.command('EVAL', UNITS_COUNTED, '0', `{${id}}`)) as [number, number];
      expect(days, `units of the days of ${id}, whose hours have ${hours}`).toBe(hours);
      const traced = begun.filter(({ customer }) => customer === id).length;
      expect(seen.get(id) ?? 0, `requests of ${id} at the backend`).toBeLessThanOrEqual(traced);
    }
    expect(begun.length).toBeGreaterThan(CUSTOMERS);
    expect(traces.some((trace) => trace.event === 'granted' && trace.period?.beyond === 'refuse')).toBe(true);
    expect(traces.some((trace) => trace.event === 'begun' && trace.units === 2)).toBe(true);
  },
);

/** Returns a function that starts a gateway of the same configuration each time. */
async function gatewayStarter(storeUrl: string, backendUrl: string): Promise<() => Promise<RunningGateway>> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  const anyPort = { host: '127.0.0.1', port: 0 };
  const config = {
    listen: anyPort,
    ops: anyPort,
    store: { url: storeUrl, timeout_ms: 300 },
    upstream: { urls: [backendUrl], max_connections: 4 },
    plans: { enterprise: { requests_per_hour: 'custom', period: { per: 'day', requests: 'custom' } } },
    routes: [
      { path: '/v1/conversations', methods: ['GET'] },
      { path: '/v1/search', methods: ['GET'], units: 2 },
    ],
    logging: { access: 'off' },
  };
  await writeFile(file, stringify(config));
  return () => startProgram({ args: ['--config', file] });
}
