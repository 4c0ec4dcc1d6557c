/**
 * The audit kept 10,000 entries and nothing else, and a change that changed nothing wrote one: 10,200 PATCHes without
 * effect took 4.4 s and pushed out every older entry. At `logging.level: warn` the log had none of them, and nothing
 * exported them. A made-up cursor `0-0` looked like an outage of Redis (503).
 */
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AuditEntry } from '../../src/store/audit.ts';
import { AUDIT_ENTRIES, AUDIT_RETENTION_MS } from '../../src/store/audit-fields.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { tollgateHereFor } from '../cli/support.ts';
import { overBothStores, type StartAdmin, type TestAdmin } from '../control/admin/support.ts';
import { openWithPrefix } from '../store/open-with-prefix.ts';
import { callAdmin } from '../support/admin.ts';
import { EMBEDDED_STORE, STORES } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { startSystem } from '../support/system.ts';

const ENTRY: AuditEntry = { at: '2026-03-01T12:00:00.000Z', actor: 'token', from: '::1', action: 'key.create' };
const FIELDS = ['at', ENTRY.at, 'actor', ENTRY.actor, 'from', ENTRY.from, 'action', ENTRY.action];
const DAY_MS = 24 * 3600 * 1000;

async function started(start: StartAdmin): Promise<TestAdmin> {
  const admin = await start();
  onTestFinished(() => admin.close());
  return admin;
}

overBothStores((start) => {
  it('a PATCH that changes nothing writes no entry, one that changes something does', async () => {
    const admin = await started(start);
    await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter', name: 'Acme' });
    const { body: key } = await admin.call('POST', '/admin/v1/customers/acme/keys', { name: 'ci' });
    const customer = '/admin/v1/customers/acme';
    const unchanged = { plan: 'starter', name: 'Acme', requests_per_hour: null, suspended: false };
    const before = await admin.list('/admin/v1/audit');
    for (const change of [unchanged, { suspended: false }, {}]) {
      const { status, body } = await admin.call('PATCH', customer, change);
      expect([status, body.name]).toEqual([200, 'Acme']);
    }
    expect((await admin.call('PATCH', `/admin/v1/keys/${key.id}`, { name: 'ci', expires_at: null })).status).toBe(200);
    expect(await admin.list('/admin/v1/audit')).toEqual(before);
    await admin.call('PATCH', customer, { ...unchanged, requests_per_hour: 7 });
    await admin.call('PATCH', `/admin/v1/keys/${key.id}`, { name: null });
    expect(await admin.list('/admin/v1/audit')).toHaveLength(before.length + 2);
  });
});

describe('entries are dropped when they are very old or very many', () => {
  it('in Redis, by the clock of the store', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { store, prefix } = await openWithPrefix(redis);
    const audit = `${prefix}:audit`;
    const [seconds] = (await redis.command('TIME')) as [string];
    const nowMs = Number(seconds) * 1000;
    // Whole nodes of the stream are dropped, of at most 100 entries.
    const fill = `for i = 1, tonumber(ARGV[2]) do redis.call('XADD', KEYS[1], ARGV[1], unpack(ARGV, 3)) end`;
    await redis.command('EVAL', fill, 1, audit, `${nowMs - AUDIT_RETENTION_MS - DAY_MS}-*`, 200, ...FIELDS);
    await redis.command('EVAL', fill, 1, audit, `${nowMs - AUDIT_RETENTION_MS + DAY_MS}-*`, 300, ...FIELDS);
    await store.audit.append(ENTRY);
    await store.audit.append(ENTRY);
    const afterYears = Number(await redis.command('XLEN', audit));
    expect(afterYears).toBeGreaterThanOrEqual(302);
    expect(afterYears).toBeLessThan(402);

    // In pieces, between which Redis answers the store.
    for (let left = AUDIT_ENTRIES; left > 0; left -= 5000) {
      await redis.command('EVAL', fill, 1, audit, '*', Math.min(left, 5000), ...FIELDS);
    }
    for (const action of ['one', 'two']) await store.audit.append({ ...ENTRY, action });
    const kept = Number(await redis.command('XLEN', audit));
    expect(kept).toBeGreaterThanOrEqual(AUDIT_ENTRIES);
    expect(kept).toBeLessThan(AUDIT_ENTRIES + 200);
    expect((await store.audit.list(undefined, 1)).items).toMatchObject([{ action: 'two' }]);
  });

  it('in the embedded store', async () => {
    const place = await EMBEDDED_STORE.start();
    onTestFinished(() => place.close());
    const nowMs = Date.parse(ENTRY.at);
    /** Appends in a store that is open for that only: it locks its file. */
    async function appendAt(...timesMs: number[]): Promise<void> {
      const store = await openStore({ url: place.url, keyPrefix: 'test', timeoutMs: 5000 }, silent);
      for (const ms of timesMs) await store.audit.append({ ...ENTRY, at: new Date(ms).toISOString() });
      await store.close();
    }
    function query(sql: string): unknown {
      const database = new DatabaseSync(place.url.slice('sqlite:'.length));
      const row = database.prepare(sql).get();
      database.close();
      return row?.result;
    }

    await appendAt(nowMs - AUDIT_RETENTION_MS - 1, nowMs - AUDIT_RETENTION_MS, nowMs);
    expect(query('SELECT count(*) AS result FROM audit')).toBe(2);
    query(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${AUDIT_ENTRIES})
      INSERT INTO audit (at, actor, "from", action) SELECT '${ENTRY.at}', 'token', '::1', 'filler' FROM numbers`);
    await appendAt(nowMs);
    expect(query('SELECT count(*) AS result FROM audit')).toBe(AUDIT_ENTRIES);
  });
});

describe.each(STORES)('over $name', (store) => {
  it('changes are logged at every level, and exported by time, one JSON object per line', async () => {
    const { gateway } = await startSystem({ store, config: { logging: { level: 'fatal' } } });
    const created = gateway.logs.filter(({ action }) => action === 'key.create');
    expect(created).toMatchObject([{ msg: 'key created', actor: 'token', customer: 'acme' }]);

    const { body } = await callAdmin(gateway, '/admin/v1/audit');
    expect(body.items).toHaveLength(2);
    const list = async (query: string) => (await callAdmin(gateway, `/admin/v1/audit?${query}`)).body.items;
    const [hourAgo, inAnHour] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString());
    expect(await list(`from=${hourAgo}&to=${inAnHour}`)).toEqual(body.items);
    expect(await list(`from=${inAnHour}`)).toEqual([]);
    expect(await list(`to=${hourAgo}`)).toEqual([]);
    expect(await list('from=0001-01-01T00:00:00Z&to=0001-01-01T00:00:01Z')).toEqual([]);
    for (const query of ['cursor=0-0', 'from=yesterday', 'to=1']) {
      expect((await callAdmin(gateway, `/admin/v1/audit?${query}`)).status).toBe(422);
    }

    const { status, stdout } = await tollgateHereFor(gateway)('audit', '--jsonl', '--from', hourAgo ?? '');
    expect(status).toBe(0);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(body.items);
  });
});
