/**
 * The tour of the README worked once: its customer and its used quota were kept in var/, so on the next day its commands
 * answered 409 and 429. And where a port was taken, the message named settings of a file that `npm start` hides, not the
 * variable to set.
 */
import { expect, it } from 'vitest';
import { temporaryFile } from '../cli/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
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

it('npm start begins anew each time', async () => {
  expect(await tour(await startQuickStart(ENV))).toEqual([201, 200, 200, 429]);
  expect(await tour(await startQuickStart(ENV))).toEqual([201, 200, 200, 429]);
});

it('QUICK_START_STORE keeps what was stored', async () => {
  const env = { ...ENV, QUICK_START_STORE: `${await temporaryFile('unused', '')}.sqlite` };
  expect(await tour(await startQuickStart(env))).toEqual([201, 200, 200, 429]);
  expect(await tour(await startQuickStart(env))).toEqual([409, 429, 429, 429]);
});

it('where a port is in use, the message names the variable to set', async () => {
  const first = await startQuickStart(ENV);
  const taken = [
    ['PORT', 'listen', first.public],
    ['OPS_PORT', 'ops', first.ops],
    ['ADMIN_PORT', 'admin', first.admin ?? ''],
  ] as const;
  for (const [variable, section, url] of taken) {
    const { port } = new URL(url);
    await expect(startQuickStart({ ...ENV, [variable]: port })).rejects.toThrow(
      `127.0.0.1:${port}: something else listens there already; choose another ${section}.host or ${section}.port (${variable}=0 in the environment takes any free port)`,
    );
  }
});
