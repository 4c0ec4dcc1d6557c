/**
 * Only successful changes had a log line: somebody who stole a token could read every customer, try refused writes and
 * preview configurations, and neither the log nor a metric showed it; at `logging.level: warn` not even changes were
 * logged.
 */
import { expect, it } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

it('every admin request is counted, and logged at every level without its path, query and body', async () => {
  const { gateway } = await startSystem({ config: { logging: { level: 'error' } } });
  const before = gateway.logs.length;
  const marked = 'marked-not-to-be-logged';
  await callAdmin(gateway, '/admin/v1/customers/acme');
  await callAdmin(gateway, `/admin/v1/keys/${marked}?also=${marked}`, { method: 'DELETE' });
  await callAdmin(gateway, `/admin/v1/${marked}`);
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'new', plan: 'none-such', name: marked } });
  await callAdmin(gateway, '/admin/v1/config/preview', { body: { [marked]: 1 } });
  await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { name: 'Acme' } });
  const stranger = await fetch(`${gateway.admin}/admin/v1/customers/acme`, {
    headers: { authorization: `Bearer ${marked}` },
  });
  expect(stranger.status).toBe(401);

  await expect.poll(() => gateway.logs.length - before).toBe(7);
  const common = {
    level: 'info',
    msg: 'admin request',
    actor: 'token',
    client: '127.0.0.1',
    duration_ms: expect.any(Number),
  };
  expect(gateway.logs.slice(before)).toMatchObject([
    { ...common, method: 'GET', route: '/admin/v1/customers/{id}', status: 200 },
    { ...common, method: 'DELETE', route: '/admin/v1/keys/{keyId}', status: 404 },
    { ...common, method: 'GET', route: 'none', status: 404 },
    { ...common, method: 'POST', route: '/admin/v1/customers', status: 422 },
    { ...common, method: 'POST', route: '/admin/v1/config/preview', status: 415 },
    { level: 'info', msg: 'customer updated', actor: 'token', customer: 'acme' },
    { ...common, method: 'PATCH', route: '/admin/v1/customers/{id}', status: 200 },
  ]);
  expect(JSON.stringify(gateway.logs)).not.toContain(marked);
  expect(JSON.stringify(gateway.logs)).not.toContain(ADMIN_TOKEN);
  expect(await readMetric(gateway, 'tollgate_admin_requests_total')).toMatchObject({
    'route="/admin/v1/customers/{id}",method="GET",code="200"': 1,
    'route="/admin/v1/customers/{id}",method="GET",code="401"': 1,
    'route="/admin/v1/customers/{id}",method="PATCH",code="200"': 1,
    'route="/admin/v1/keys/{keyId}",method="DELETE",code="404"': 1,
    'route="none",method="GET",code="404"': 1,
    'route="/admin/v1/config/preview",method="POST",code="415"': 1,
  });
});
