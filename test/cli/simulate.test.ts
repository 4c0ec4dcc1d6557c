/** Limits tried on the past: what the usage history proves. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CustomerHours } from '../../src/cli/simulate.ts';
import { SHORT_LEASE } from '../../src/customers/quota/leases.ts';
import { MemoryHash } from '../../src/store/memory-hash.ts';
import { HOURLY, reserve } from '../../src/store/window-arithmetic.ts';
import { hourly } from '../../src/store/windows.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';
import { tollgateHereFor } from './support.ts';

const tollgate = tollgateHereFor({ admin: 'http://127.0.0.1:9' });
const START_MS = Date.UTC(2026, 0, 31, 9, 30);

it.each([
  [[]],
  [['--plan', 'starter']],
  [['--plan', 'starter=0']],
  [['--plan', 'starter=many']],
  [['--log', 'access.log', '--plan', 'starter=1']],
])('simulate %j is wrong usage', async (args) => {
  expect((await tollgate('simulate', ...args)).status).toBe(2);
});

/** How many requests at these seconds the stores refuse: near a limit, each request reserves one unit when it arrives. */
function refusedOf(seconds: readonly number[], limit: number): number {
  const window = new MemoryHash();
  const request = { need: 1, ahead: 0, limits: hourly(limit), holdMs: SHORT_LEASE.holdMs, refunds: [] };
  return seconds.filter(
    (second) => reserve(() => window, HOURLY, START_MS + second * 1000, request, 'epoch').granted === 0,
  ).length;
}

it('the usage history proves nothing that a replay of the requests contradicts', () => {
  const arrival = fc.record({
    hour: fc.integer({ min: 0, max: 3 }),
    // Not at the very end of an hour: such a unit may still count for some seconds of the hour after the next.
    second: fc.integer({ min: 0, max: 3589 }),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 40 }), fc.integer({ min: 1, max: 12 }), (arrivals, limit) => {
      const seconds = arrivals.map(({ hour, second }) => hour * 3600 + second).sort((a, b) => a - b);
      const refused = refusedOf(seconds, limit);
      const hours = new CustomerHours('acme', 'starter', limit);
      for (let hour = 0; hour < 4; hour++) {
        const requests = arrivals.filter((each) => each.hour === hour).length;
        if (requests > 0) hours.add(hour * 3_600_000, requests);
      }
      expect(refused).toBeGreaterThanOrEqual(hours.found.refused_at_least);
      if (hours.found.verdict === 'surely') expect(refused).toBeGreaterThan(0);
      if (hours.found.verdict === 'surely_not') expect(refused).toBe(0);
    }),
  );
});

it('the usage history is read of customers that the limit of the plan applies to', async () => {
  let nowMs = START_MS;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs - START_MS };
  const { gateway } = await startSystem({ clock });
  for (const [id, requests, own] of [
    ['acme-2', 5, undefined],
    ['globex', 2, undefined],
    ['initech', 9, 50],
  ] as const) {
    const key = await createCustomerWithKey(gateway, { id, plan: 'starter', ...(own && { requests_per_hour: own }) });
    for (let i = 0; i < requests; i++) {
      nowMs += 1000;
      await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
    }
  }
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'idle', plan: 'starter' } });
  nowMs += 2 * 3_600_000;
  const from = new Date(START_MS - 3_600_000).toISOString();
  const { status, stdout, stderr } = await tollgateHereFor(gateway)(
    ...['simulate', '--from', from, '--plan', 'starter=4', '--customer', 'nobody=1'],
  );
  const read = `Whole hours since ${from.slice(0, 19)}Z are counted. The current hour is not.`;
  expect({ status, stderr }).toEqual({ status: 0, stderr: `There is no customer nobody.\n${read}\n` });
  expect(stdout).toMatch(/^starter +4 +4 +1 +0 +3$/m);
  expect(stdout).toMatch(/^acme-2 +starter +4 +surely +1 +5 +5$/m);
  expect(stdout).not.toMatch(/globex|initech|idle/);
});
