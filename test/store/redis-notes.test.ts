/** Last uses and the audit log in Redis: their names, their bounds, and what somebody else put there. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/store/audit.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { openWithPrefix } from './open-with-prefix.ts';

const ENTRY: AuditEntry = { at: '2026-03-01T12:00:00.000Z', actor: 'token', from: '::1', action: 'key.create' };
const FIELDS = ['at', ENTRY.at, 'actor', ENTRY.actor, 'from', ENTRY.from, 'action', ENTRY.action];

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const open = () => openWithPrefix(redis);

test('lie under the documented names', async () => {
  const { store, prefix } = await open();
  await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1_772_366_400_000 }]);
  await store.audit.append({ ...ENTRY, customer: 'acme', keyId: 'k1', details: { name: 'x' } });
  expect(await redis.command('ZRANGE', `${prefix}:key-uses`, 0, -1, 'WITHSCORES')).toEqual(['k1', '1772366400000']);
  expect(await redis.command('XRANGE', `${prefix}:audit`, '-', '+')).toEqual([
    [expect.stringMatching(/^\d+-\d+$/), [...FIELDS, 'customer', 'acme', 'key_id', 'k1', 'details', '{"name":"x"}']],
  ]);
});

test('an entry that somebody else wrote into the audit log is skipped when it is none', async () => {
  const { store, prefix } = await open();
  await store.audit.append({ ...ENTRY, action: 'first' });
  await redis.command('XADD', `${prefix}:audit`, '*', 'hello', 'world');
  await redis.command('XADD', `${prefix}:audit`, '*', ...FIELDS, 'details', '{broken');
  await redis.command('XADD', `${prefix}:audit`, '*', ...FIELDS, 'details', '[1]', 'customer', '');
  // A value that reads like a field's name is not one.
  await redis.command('XADD', `${prefix}:audit`, '*', ...FIELDS, 'other', 'customer', 'key_id', 'k1');
  const { items } = await store.audit.list(undefined, 10);
  expect(items.map(({ id: _id, ...entry }) => entry)).toEqual([
    { ...ENTRY, keyId: 'k1' },
    { ...ENTRY, details: { unreadable: '[1]' } },
    { ...ENTRY, details: { unreadable: '{broken' } },
    { ...ENTRY, action: 'first' },
  ]);
});

test.each(['inf', '-inf', '-5', '8640000000000001'])('a last use that is no time is unknown: %s', async (score) => {
  const { store, prefix } = await open();
  await redis.command('ZADD', `${prefix}:key-uses`, score, 'k1');
  expect(await store.keyUses.lastUses(['k1'])).toEqual([undefined]);
});

test('neither is tracked, so neither is pushed', async () => {
  const { store } = await open();
  const tracked = async () =>
    Number(/tracking_total_items:(\d+)/.exec(String(await redis.command('INFO', 'stats')))?.[1]);
  const before = await tracked();
  await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }]);
  await store.keyUses.lastUses(['k1']);
  await store.audit.append(ENTRY);
  await store.audit.list(undefined, 10);
  expect(await tracked()).toBe(before);
});

test('while their connection is lost, keys are read and quotas are held', async () => {
  const { store } = await open();
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await redis.disconnect('tollgate-background');
  await expect.poll(() => store.status().lastError).toBeDefined();
  expect(store.isUp()).toBe(true);
  expect(await store.records.findCustomer('acme')).toMatchObject({ id: 'acme' });
  await expect.poll(() => store.audit.append(ENTRY).then(() => 'appended', String)).toBe('appended');
  expect(store.status().up).toBe(true);
});
