import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';

test('the limit of a customer is explained by the line of the file that the gateway runs with', async () => {
  const { gateway } = await startSystem({
    config: {
      plans: { starter: { requests_per_hour: 1001 }, enterprise: { requests_per_hour: 'custom' } },
      overrides: { vip: { requests_per_hour: 9009 } },
    },
  });
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'vip', plan: 'starter' } });
  for (const [customer, limit, source] of [
    ['acme', 1001, 'plan'],
    ['vip', 9009, 'override'],
  ] as const) {
    const { body } = await callAdmin(gateway, `/admin/v1/customers/${customer}/explain`);
    expect(body).toMatchObject({ customer, limit, limit_source: source, limit_problem: null });
    const [, file = '', line] = /^(.+):(\d+)$/.exec(body.origin) ?? [];
    expect((await readFile(file, 'utf8')).split('\n')[Number(line) - 1]).toContain(`requests_per_hour: ${limit}`);
  }
});

test('the configuration that runs can be read, and has no secret', async () => {
  const { gateway } = await startSystem({ config: { plans: { starter: { requests_per_hour: 77 } } } });
  const { status, body } = await callAdmin(gateway, '/admin/v1/config');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    listen: { host: '127.0.0.1' },
    admin: { host: '127.0.0.1', token: '(secret)' },
    plans: { starter: { requests_per_hour: 77 } },
  });
  expect(JSON.stringify(body)).not.toContain(ADMIN_TOKEN);
});
