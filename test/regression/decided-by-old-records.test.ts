/**
 * A request that waited for its body was decided by the customer and key that were read before it. With the last byte sent
 * 30 s late, a suspended customer, a revoked key or another address still got 200, a lowered limit admitted many times as
 * much, and a deleted customer's window and history came back. An upload with `Expect` counted as two quota decisions.
 */
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { startBodySystem } from '../bodies/support.ts';
import { callAdmin } from '../support/admin.ts';
import { STORES } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startRedis } from '../support/redis-server.ts';

const LIMIT = 1000;
const CUSTOMER = { id: 'acme', plan: 'enterprise', requests_per_hour: LIMIT };

/** An upload of which the last byte is missing, after the gateway has read the head. */
async function startUpload({ open, gateway }: Awaited<ReturnType<typeof startBodySystem>>, ...fields: string[]) {
  const upload = open('POST /api/a', 'Content-Length: 3', ...fields);
  upload.send(fields.length > 0 ? '' : 'ab');
  if (fields.length > 0) await upload.until(/100 Continue/);
  else
    await expect.poll(async () => Object.values(await readMetric(gateway, 'tollgate_inflight_requests'))).toEqual([1]);
  return { upload, finish: () => upload.send(fields.length > 0 ? 'abc' : 'c') };
}

const CHANGES = [
  [
    'a suspended customer',
    '/admin/v1/customers/acme',
    { method: 'PATCH', body: { suspended: true } },
    /403 .*"code":"customer_suspended"/s,
  ],
  ['a deleted customer', '/admin/v1/customers/acme', { method: 'DELETE' }, /401 .*"code":"invalid_key"/s],
  ['a revoked key', '/admin/v1/keys/{key}', { method: 'DELETE' }, /401 .*"code":"invalid_key"/s],
  [
    'a key for other addresses',
    '/admin/v1/keys/{key}',
    { method: 'PATCH', body: { allowed_addresses: ['192.0.2.0/24'] } },
    /403 .*"code":"address_not_allowed"/s,
  ],
] as const;

describe.each(STORES)('with $name, while a body arrives', (store) => {
  describe.each([
    ['', []],
    [' after 100 Continue', ['Expect: 100-continue']],
  ])('an upload%s', (_, fields) => {
    it.each(CHANGES)('of %s is refused, free of charge', async (_, path, change, refusal) => {
      const system = await startBodySystem({ store, customer: CUSTOMER });
      const { gateway, backend, headers } = system;
      const { body: keys } = await callAdmin(gateway, '/admin/v1/customers/acme/keys');
      const { upload, finish } = await startUpload(system, ...fields);
      const changed = await callAdmin(gateway, path.replace('{key}', keys.items[0].id), change);
      expect(changed.status).toBeLessThan(300);
      // As soon as a new request is refused, the gateway knows of the change.
      await expect.poll(async () => (await fetch(`${gateway.public}/api/a`, { headers })).status).toBeGreaterThan(400);
      const seen = backend.seen.length;
      finish();
      expect(await upload.until(/"request_id"|"bytes":3/)).toMatch(refusal);
      expect(backend.seen).toHaveLength(seen);
    });
  });

  it('a lowered limit holds for all that wait', async () => {
    const { open, gateway, headers, backend } = await startBodySystem({ store, customer: CUSTOMER });
    const uploads = Array.from({ length: 8 }, () => open('POST /api/a', 'Content-Length: 3'));
    await expect.poll(async () => Object.values(await readMetric(gateway, 'tollgate_inflight_requests'))).toEqual([8]);
    await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { requests_per_hour: 3 } });
    const limit = async () => (await fetch(`${gateway.public}/api/a`, { headers })).headers.get('x-ratelimit-limit');
    await expect.poll(limit).toBe('3');
    for (const upload of uploads) upload.send('abc');
    for (const upload of uploads) await upload.until(/"bytes":3|"code":"quota_exceeded"/);
    expect(backend.seen.length).toBeLessThanOrEqual(3);
  });
});

test('an upload leaves nothing of a customer that was deleted while it arrived', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const kind = { name: 'Redis', start: async () => ({ url: redis.url, close: async () => {} }) };
  const system = await startBodySystem({ store: kind, customer: CUSTOMER });
  const { upload, finish } = await startUpload(system);
  await callAdmin(system.gateway, '/admin/v1/customers/acme', { method: 'DELETE' });
  const status = async () => (await fetch(`${system.gateway.public}/api/v1/usage`, { headers: system.headers })).status;
  await expect.poll(status).toBe(401);
  finish();
  await upload.until(/"request_id"|"bytes":3/);
  expect(await redis.command('KEYS', '*{acme}*')).toEqual([]);
});

test('an upload that is decided again counts as one decision', async () => {
  const { open, gateway } = await startBodySystem({ customer: CUSTOMER });
  const upload = open('POST /api/a', 'Content-Length: 3', 'Expect: 100-continue');
  await upload.until(/100 Continue/);
  // Another limit: it is decided anew, by another record.
  await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { requests_per_hour: 5 } });
  upload.send('abc');
  expect(await upload.until(/"bytes":3/)).toMatch(/x-ratelimit-limit: 5\r\n/i);
  const decisions = await readMetric(gateway, 'tollgate_quota_decisions_total');
  expect(Object.values(decisions).reduce((sum, value) => sum + value)).toBe(1);
  const authentications = await readMetric(gateway, 'tollgate_auth_total');
  expect(Object.values(authentications).reduce((sum, value) => sum + value)).toBe(1);
});
