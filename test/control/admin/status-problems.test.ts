/** /status judges the gateway once: the console and "tollgate status" print what it says. */
import { expect, it } from 'vitest';
import type { StatusDocument } from '../../../src/api/admin/responses.ts';
import { statusProblems } from '../../../src/control/admin/status-problems.ts';
import { startAdmin } from './support.ts';

async function goodStatus(): Promise<StatusDocument> {
  const admin = await startAdmin();
  const { body } = await admin.call('GET', '/status');
  await admin.close();
  return { ...body, upstreams: [], store: { ...body.store, empty: false } };
}

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const ANNOUNCED = { id: 'a', host: 'h', pid: 7, version: '1', started_at: null };

it('finds each problem that the document shows, and none in a good one', async () => {
  const good = await goodStatus();
  const whatOf = (changed: Partial<StatusDocument>) =>
    statusProblems({ ...good, ...changed }, NOW_MS).map(({ what }) => what);
  expect(whatOf({})).toEqual([]);
  const store = { ...good.store, wiped: true, empty: true, evicted: true, refusing: true };
  expect(whatOf({ store })).toHaveLength(4);
  expect(whatOf({ store: { ...good.store, up: false }, invalidation: { connected: false } })).toHaveLength(1);
  expect(whatOf({ invalidation: { connected: false } })).toHaveLength(1);
  expect(
    whatOf({ upstreams: [{ backend: 'default', url: 'http://a', up: false, reason: 'failing', fault: null }] }),
  ).toHaveLength(1);
  const maintenance = { ...good.maintenance, mode: 'down' as const, since: '2026-02-28T12:00:00Z' };
  expect(whatOf({ maintenance })).toEqual([]);
  expect(whatOf({ maintenance: { ...maintenance, since: '2026-02-28T11:59:59Z' } })).toHaveLength(1);
  expect(whatOf({ customers_without_plan: { customers: 3, plans: ['gold'] } })).toEqual([
    expect.stringContaining('not configured: 3.'),
  ]);
});

it('a worker or another instance with another configuration is a problem, but not one that has ended', async () => {
  const good = await goodStatus();
  const { hash } = good.config;
  const worker = { id: 1, pid: 7, started_at: null, ready: true, config_hash: hash, restarts: 0 };
  const fleet = [
    { ...ANNOUNCED, announced_at: '2026-03-01T12:00:00Z', config_hash: hash },
    { ...ANNOUNCED, announced_at: '2026-03-01T11:50:00Z', config_hash: 'ended' },
  ];
  expect(statusProblems({ ...good, workers: [worker], fleet }, NOW_MS)).toEqual([]);
  const others = [{ ...ANNOUNCED, announced_at: '2026-03-01T11:59:50Z', config_hash: 'other' }, ...fleet];
  const problems = statusProblems({ ...good, workers: [{ ...worker, config_hash: 'other' }], fleet: others }, NOW_MS);
  expect(problems.map(({ what }) => what)).toEqual([
    'Worker 1 runs another configuration.',
    '1 of 2 instances run another configuration.',
  ]);
});
