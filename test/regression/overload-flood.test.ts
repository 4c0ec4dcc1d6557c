/**
 * 3,000 connections of one customer that repeated each 503 at once took all of the gateway's time: a request of another
 * customer took 12.6 s instead of 0.2 s.
 */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { openSession, request } from '../limits/support.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

it('a connection that repeats a request refused for overload is refused once a second, and others at once', async () => {
  const held: ServerResponse[] = [];
  const { gateway, key } = await startSystem({
    config: { limits: { in_flight: 1 } },
    answer: (_req, res) => void held.push(res),
  });
  const [served, repeating] = await Promise.all([1, 2].map(() => openSession(gateway.public)));
  if (!served || !repeating) throw new Error('there are two');
  served.send(request(key));
  await expect.poll(() => held.length).toBe(1);

  const beganMs = performance.now();
  for (let refused = 1; refused <= 3; refused++) {
    repeating.send(request(key));
    await expect.poll(() => repeating.statuses()).toHaveLength(refused);
  }
  expect(performance.now() - beganMs).toBeGreaterThan(1900);
  // While a refusal waits, it is not in progress: places that become free are free for all.
  let isOvertaken = false;
  // Again where the machine stood still for that second.
  for (let attempt = 1; attempt <= 3 && !isOvertaken; attempt++) {
    repeating.send(request(key));
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    const other = await openSession(gateway.public);
    other.send(request(key));
    await expect.poll(() => other.statuses()).toEqual([503]);
    isOvertaken = repeating.statuses().length < 3 + attempt;
    await expect.poll(() => repeating.statuses()).toEqual(Array(3 + attempt).fill(503));
  }
  expect(isOvertaken).toBe(true);
  for (const res of held) res.end();
  await expect.poll(() => served.statuses()).toEqual([200]);
});
