/**
 * The tour of the README worked once: its customer and its used quota were kept in var/, so on the next day its commands
 * answered 409 and 429. And where a port was taken, it ended.
 */
import { expect, it } from 'vitest';
import { startServer } from '../cli/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { startShared } from '../support/cleanup.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { type RunningGateway, startQuickStart } from '../support/process.ts';

const ENV = { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
const CUSTOMER = { id: 'acme', plan: 'enterprise', requests_per_hour: 2 };

/** The statuses of the README's tour. */
async function tour(gateway: RunningGateway): Promise<number[]> {
  const created = await callAdmin(gateway, '/admin/v1/customers', { method: 'POST', body: CUSTOMER });
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { method: 'POST' });
  const statuses = [created.status];
  for (let sent = 0; sent < 3; sent++) {
    const { status } = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(body.key) });
    statuses.push(status);
  }
  gateway.signal('SIGTERM');
  expect((await gateway.finished).status).toBe(0);
  return statuses;
}

/** A start whose ports are in use: `usedPort`, for each of the two. */
const started = startShared(async () => {
  const { port } = new URL(await startServer(() => undefined));
  return { usedPort: port, gateway: await startQuickStart({ ...ENV, PORT: port, OPS_PORT: port }) };
});

it('where a port is in use, it takes the next free one and says so', () => {
  const { gateway, usedPort } = started();
  expect(gateway.output()).toMatch(new RegExp(`^  Ports in use, .*: ${usedPort}\\b`, 'm'));
  for (const url of [gateway.public, gateway.ops]) expect(new URL(url).port).not.toBe(usedPort);
});

it('npm start begins anew each time', async () => {
  expect(await tour(started().gateway)).toEqual([201, 200, 200, 429]);
  expect(await tour(await startQuickStart(ENV))).toEqual([201, 200, 200, 429]);
});
