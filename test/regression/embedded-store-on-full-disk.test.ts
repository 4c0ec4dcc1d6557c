/**
 * On a full disk the embedded store counted as up with each record that it read, and as down with each write that failed. So
 * `/readyz` said `ready` while quotas were decided without the store, and nothing counted or reported that.
 */
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

const ENOUGH_PAGES = 1_000_000;
/** After the last refusal, until it counts as over. */
const SETTLED_MS = 10_001;

test('with the embedded store on a full disk the gateway is degraded, logs it once, and still serves requests', async () => {
  let database: DatabaseSync | undefined;
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
    database = this;
    return execOf.call(this, sql);
  });
  onTestFinished(() => exec.mockRestore());
  let passedMs = 0;
  const clock = { nowMs: () => Date.now() + passedMs, monotonicMs: () => performance.now() + passedMs };
  const { gateway, key } = await startSystem({ clock });
  exec.mockRestore();
  const send = async () => (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;
  const readiness = async () => (await fetch(`${gateway.ops}/readyz`)).json();
  const createCustomer = async (i: number) =>
    (await callAdmin(gateway, '/admin/v1/customers', { body: { id: `customer-${i}`, plan: 'starter' } })).status;
  const linesOf = (text: RegExp) => gateway.logs.filter(({ msg }) => text.test(String(msg)));
  /** SQLite refuses to grow the file, as it does when the disk is full. */
  const limitPages = (pages: number) => database?.exec(`PRAGMA max_page_count = ${pages}`);
  expect(await send()).toBe(200);

  limitPages(1);
  let created = 0;
  while ((await createCustomer(created)) === 201) created += 1;
  expect(await send()).toBe(200);
  expect(await readiness()).toEqual({ status: 'degraded', reasons: ['store_refusing'] });
  expect(await readMetric(gateway, 'tollgate_store_refusing')).toEqual({ '': 1 });
  await createCustomer(created);
  expect(linesOf(/^the store refuses/)).toMatchObject([{ reason: 'database or disk is full' }]);

  limitPages(ENOUGH_PAGES);
  passedMs += SETTLED_MS;
  expect(await createCustomer(created)).toBe(201);
  expect(await readiness()).toEqual({ status: 'ready', reasons: [] });
  expect(linesOf(/^the store accepts/)).toHaveLength(1);
});

const execOf = DatabaseSync.prototype.exec;
