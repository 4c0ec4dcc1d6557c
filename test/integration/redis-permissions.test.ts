import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { tryStore } from '../../src/store/open/try-store.ts';
import type { Store } from '../../src/store/store.ts';
import { hourly } from '../../src/store/windows.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway } from '../support/gateway.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';

const PAGE = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');

const USAGE = { hoursDays: 35, days: 400 };

/** The rules as the documentation gives them. */
function documentedRules(): string[] {
  const [, section = ''] = PAGE.split('## Permissions');
  const [, commands = ''] = section.split('```');
  const channel = /`(&[^`]+)`/.exec(section)?.[1] ?? '';
  return [...commands.trim().split(/\s+/), channel, '~tollgate:*'];
}

/** Every call of the admin API that is not made above. */
async function callEverything(store: Store): Promise<void> {
  const { records, keyUses, audit, usages, portalSessions, failedRequests } = store;
  const hash = (digit: string) => digit.repeat(64);
  await records.createCustomer({ id: 'globex', plan: 'starter', suspended: false });
  await records.updateCustomer('globex', { name: 'Globex', requestsPerHour: null });
  await createKeyWithCustomer(records, hash('a'), { id: 'k1', customer: 'globex' });
  await createKeyWithCustomer(records, hash('b'), { id: 'k2', customer: 'globex' });
  await records.updateKey('k1', { name: 'x', expiresAt: null });
  await records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2100-01-01T00:00:00Z' });
  await records.revokeKey('k1', '2026-01-01T00:00:00Z');
  await keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }]);
  await keyUses.lastUses(['k1']);
  const session = { id: 'ps_1', customer: 'globex', scopes: [], expiresAtMs: 0 };
  await portalSessions.add('code', 'code', session, 60_000);
  await portalSessions.open('code', 'cookie');
  expect(await portalSessions.find('cookie', 'cookie')).toEqual(session);
  await portalSessions.end('cookie');
  await portalSessions.endAll('globex');
  for (const id of ['w1', 'w2']) await portalSessions.countWrite('globex', id, 1);
  await usePeriod(store);
  await store.maintenance.write({ mode: 'down' });
  expect(await store.maintenance.read()).toMatchObject({ mode: 'down' });
  await store.maintenance.write({ mode: 'off' });
  const call = { customer: 'globex', route: '/v1/old', count: 1, gone: 0, lastAtMs: systemClock.nowMs() };
  await store.usageHistory?.add({ counts: [], totals: [], near: [], deprecated: [call] });
  expect(await store.usageHistory?.deprecated()).toMatchObject([{ customer: 'globex', count: 1 }]);
  await audit.append({ at: '2026-01-01T00:00:00Z', actor: 'token', from: '::1', action: 'key.revoke' });
  await audit.list(undefined, 10);
  const failed = { requestId: 'r', status: 401, source: 'gateway', method: 'GET', route: 'none' } as const;
  for (const id of ['a.1', 'a.2', 'a.3']) {
    await failedRequests.add([{ ...failed, id, atMs: await failedRequests.nowMs() }], { hours: 24, entries: 2 });
  }
  expect((await failedRequests.list({ sinceMs: 0 }, undefined, 10)).items).toHaveLength(2);
  expect(await failedRequests.find('r', 0, 20)).toContainEqual(expect.objectContaining({ id: 'a.3' }));
  await records.listCustomers(undefined, 10);
  await usages.usedOf([{ customer: 'globex', from: 0 }]);
  await records.listKeys(undefined, 10);
  await records.listCustomerKeys('globex', undefined, 1000);
  await records.discardKey('k2');
  await records.deleteCustomer('globex');
}

/** The same of a key with a limit of its own. */
async function useKey(records: Store['records'], windows: Store['windows']): Promise<void> {
  const limits = [...hourly(9), { policy: 'key', amount: 1, root: 'k1' }] as const;
  const reservation = { need: 1, ahead: 0, limits, holdMs: 2000, refunds: [] };
  expect(await windows.reserve({ customer: 'globex', grant: 'k', ...reservation })).toMatchObject({ granted: 1 });
  await windows.refund('globex', [{ grant: 'k', units: 1, isFinal: true }], 'k1');
  await records.resetKeyWindow('globex', 'k1');
  expect(await records.noteKeyReset('k1', '2026-01-01T00:00:00Z')).toMatchObject({ id: 'k1' });
}

/** Grants, reports, refunds, reads and resets units of a day. */
async function usePeriod({ records, windows, usages, periods }: Store): Promise<void> {
  const period = { policy: 'daily', amount: 9, beyond: 'refuse', anchorMs: 0, plan: 'starter' } as const;
  const reservation = { need: 3, ahead: 0, limits: [...hourly(9), period] as const, holdMs: 2000, refunds: [] };
  await windows.reserve({ customer: 'globex', grant: 'a', ...reservation });
  await windows.charge('globex', [{ grant: 'report', ageMs: 0, units: 2 }], period);
  await useKey(records, windows);
  await windows.refund('globex', [{ grant: 'a', units: 1, isFinal: true }]);
  expect(await usages.presentPeriodsOf([{ customer: 'globex', period }])).toMatchObject([{ used: 4 }]);
  await records.resetPeriod('globex', '2026-01-01T00:00:00Z', period);
  expect(await periods.periodsOf(['globex'])).toMatchObject([{ periods: [{ used: 4, forgiven: 4 }] }]);
}

/** Makes `store reindex` add, redirect and drop each kind of entry, and put one back. */
async function reindexEverything(redis: RedisServer, { records, keyUses }: Store): Promise<void> {
  const hash = (digit: string) => digit.repeat(64);
  await redis.command('HSET', `tollgate:key:${hash('c')}`, 'id', 'k3', 'customer', 'globex');
  await redis.command('SET', 'tollgate:key-id:k3', hash('d'));
  await redis.command('SET', 'tollgate:key-id:gone', hash('d'));
  await redis.command('SADD', 'tollgate:customer-keys:{globex}', 'gone');
  await keyUses.noteUses([{ keyId: 'gone', usedAtMs: 1 }]);
  expect(await records.reindex()).toMatchObject({ entriesAdded: 2, entriesDropped: 3 });
}

it('the permissions that the documentation lists are enough for everything', async () => {
  await using opened = new AsyncDisposableStack();
  const redis = await startRedis();
  opened.defer(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>some-password', 'resetkeys', ...documentedRules());
  const backend = await startBackend();
  opened.defer(() => backend.close());
  const storeUrl = `redis://gateway:some-password@127.0.0.1:${redis.port}`;
  const gateway = await startTestGateway({ storeUrl, upstreamUrl: backend.url });
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

  const store = await openStore({ url: storeUrl, keyPrefix: 'tollgate', timeoutMs: 2000, usage: USAGE }, silent);
  opened.defer(() => store.close());
  await callEverything(store);
  await reindexEverything(redis, store);
  await store.initialise?.();
  const found = await tryStore({ url: storeUrl, keyPrefix: 'tollgate', timeoutMs: 2000 });
  expect(found).toEqual([{ outcome: 'ok', text: expect.stringContaining('all commands permitted') }]);
  const denied = await redis.command('ACL', 'LOG');
  expect(denied).toEqual([]);
});

it('the permissions that the documentation lists are enough in a cluster', async () => {
  await using opened = new AsyncDisposableStack();
  const cluster = await startRedisCluster({ nodeTimeoutMs: 4000 });
  opened.defer(() => cluster.stop());
  for (const node of cluster.nodes) {
    await node.command('ACL', 'SETUSER', 'gateway', 'on', '>some-password', 'resetkeys', ...documentedRules());
  }
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const surroundings = { ...silent, warn };
  const url = cluster.url.replace('//', '//gateway:some-password@');
  const store = await openStore({ url, keyPrefix: 'tollgate', timeoutMs: 2000, usage: USAGE }, surroundings);
  opened.defer(() => store.close());
  await callEverything(store);
  await createKeyWithCustomer(store.records, 'e'.repeat(64), { id: 'k5', customer: 'acme' });
  const reserve = { customer: 'acme', grant: 'a', need: 1, ahead: 0, limits: hourly(10), holdMs: 2000, refunds: [] };
  await cluster.moveSlot('tollgate:window:{acme}', { begun: async () => void (await store.windows.reserve(reserve)) });
  await store.windows.charge('acme', [{ grant: 'report', ageMs: 0, units: 2 }]);
  await store.windows.refund('acme', [{ grant: 'report', units: 1, isFinal: false }]);
  await store.announce('instance');
  await store.records.reindex();
  await store.initialise?.();
  expect(store.status()).toMatchObject({ up: true, invalidation: 'connected', wiped: false });
  expect(warnings).toEqual([expect.stringContaining('has no customers yet')]);
  for (const node of cluster.nodes) expect(await node.command('ACL', 'LOG')).toEqual([]);

  // The check without a gateway asks each master itself.
  for (const node of cluster.nodes) await node.command('ACL', 'SETUSER', 'gateway', '-sadd');
  const findings = await tryStore({ url, keyPrefix: 'tollgate', timeoutMs: 100 });
  const refusals = findings.filter(({ outcome }) => outcome === 'error').map(({ text }) => text);
  expect(refusals).toHaveLength(3);
  for (const text of refusals) expect(text).toMatch(/^master \S+: .*may not run SADD\)/);
});
