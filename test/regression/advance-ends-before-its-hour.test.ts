/**
 * How it showed: after two outages an hour apart, 30 requests reached the backend within one hour at a limit of 12 and
 * two gateways, where docs/quota.md allows 24 at most. A gateway that was told how much is used dropped that number an
 * hour later. But the number includes units whose requests had not begun yet: these began later, within the same hour
 * as the requests of the next outage. The formal model of the quota (tools/model) found it.
 */
import { expect, test } from 'vitest';
import { unharmed } from '../../tools/simulator/simulated-store.ts';
import { VirtualWorld } from '../../tools/simulator/virtual-world.ts';
import { mostInAnyWindow } from '../customers/quota/support/most-in-any-window.ts';

const WINDOW_MS = 3_600_000;
const LIMIT = 12;
const SHARE = 6;

test('requests that begin after the store told their usage count for a whole hour in the next outage', async () => {
  let beginsAfterMs = 1900;
  const world = new VirtualWorld({
    seed: 1,
    gateways: 2,
    limit: LIMIT,
    onError: 'local',
    timeoutMs: 100,
    fate: () => unharmed(1, 1),
    dispatch: () => ({ kind: 'begins', afterMs: beginsAfterMs }),
    // The fastest clocks for which the bound holds.
    clocks: 1.0005,
  });
  const { time } = world;
  const [local, leasing] = [world.gateway(0), world.gateway(1)];
  const request = (gateway: typeof local, count: number) => {
    for (let sent = 0; sent < count; sent++) gateway.request();
  };

  await time.runUntil(9490);
  local.link.cut(497);
  request(local, 1);
  await time.runUntil(9980);
  request(leasing, LIMIT);
  await time.runUntil(9986);
  request(local, SHARE - 1);
  // The local units are charged within the bucket that ends at 10,002 ms, and nothing has begun yet.
  await time.runUntil(10_000);
  expect(local.link.counts.reported).toBe(SHARE);
  expect(world.begins).toEqual([]);

  await time.runUntil(10_003 + WINDOW_MS);
  expect(world.begins).toHaveLength(LIMIT + SHARE);
  beginsAfterMs = 0;
  for (const gateway of [local, leasing]) {
    gateway.link.cut(60_000);
    request(gateway, SHARE);
  }
  const begunMs = world.begins.map(({ atMs }) => atMs);
  expect(mostInAnyWindow(begunMs, WINDOW_MS)).toBeLessThanOrEqual(LIMIT + 2 * SHARE);
});
