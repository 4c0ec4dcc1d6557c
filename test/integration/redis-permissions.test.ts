import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';

const PAGE = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');

/** The rules as the documentation gives them. */
function documentedRules(): string[] {
  const [, section = ''] = PAGE.split('## Permissions');
  const [, commands = ''] = section.split('```');
  const channel = /`(&[^`]+)`/.exec(section)?.[1] ?? '';
  return [...commands.trim().split(/\s+/), channel, '~tollgate:*'];
}

it('the permissions that the documentation lists are enough for everything', async () => {
  await using opened = new AsyncDisposableStack();
  const redis = await startRedis();
  opened.defer(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>some-password', 'resetkeys', ...documentedRules());
  const backend = await startBackend();
  opened.defer(() => backend.close());
  const gateway = await startTestGateway({
    storeUrl: `redis://gateway:some-password@127.0.0.1:${redis.port}`,
    upstreamUrl: backend.url,
  });
  opened.defer(() => gateway.close());

  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 2 });
  const statuses = [];
  for (let i = 0; i < 3; i++) {
    statuses.push((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status);
  }
  expect(statuses).toEqual([200, 200, 429]);
  expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage', { method: 'DELETE' })).status).toBe(204);
  expect((await callAdmin(gateway, '/status')).body).toMatchObject({
    store: { up: true, wiped: false },
    invalidation: { connected: true },
    instances: 1,
  });
  expect(await redis.command('EXISTS', 'tollgate:installed')).toBe(1);
  const denied = await redis.command('ACL', 'LOG');
  expect(denied).toEqual([]);
});
