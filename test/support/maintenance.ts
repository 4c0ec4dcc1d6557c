import { setTimeout } from 'node:timers/promises';
import { expect } from 'vitest';
import { callAdmin } from './admin.ts';
import type { TestGateway } from './gateway.ts';
import { startRedisSystem } from './redis-system.ts';
import { startLoad } from './steady-load.ts';

export interface MaintenanceSettings {
  readonly mode: 'off' | 'read_only' | 'down';
  readonly routes?: readonly string[];
  readonly until?: string;
  readonly message?: string;
}

/** Resolves to the document of the reply. */
export async function setMaintenance(gateway: Pick<TestGateway, 'admin'>, change: MaintenanceSettings) {
  const { status, body } = await callAdmin(gateway, '/admin/v1/maintenance', { method: 'PUT', body: change });
  expect([status, body?.detail]).toEqual([200, undefined]);
  return body;
}

/** Callers at two gateways, while maintenance begins and ends in turns, each for a second, so many times in all. */
export async function switchUnderLoad(seconds: number): Promise<void> {
  const { gateway, gateways, backend, key } = await startRedisSystem({
    gateways: 2,
    customer: { plan: 'enterprise', requests_per_hour: 1_000_000 },
  });
  const load = startLoad(
    [...gateways, ...gateways].map(({ public: url }) => url),
    () => key,
  );
  for (let second = 0; second < seconds; second++) {
    await setMaintenance(gateways[second % 2] ?? gateway, { mode: second % 2 === 0 ? 'down' : 'off' });
    await setTimeout(1000);
  }
  await setMaintenance(gateway, { mode: 'off' });
  const answers = await load.stop();
  const counts = Map.groupBy(answers, ({ status, code }) => `${status} ${code}`);
  expect([...counts.keys()].sort()).toEqual(['200 undefined', '503 maintenance']);
  const served = counts.get('200 undefined')?.length;
  expect(backend.seen.length).toBe(served);
  // What leases still hold comes back within seconds.
  const used = async () => (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used;
  await expect.poll(used, { timeout: 30_000 }).toBe(served);
}
