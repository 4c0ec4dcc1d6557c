import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';
import { openSession, request } from './support.ts';

it('beyond limits.in_flight requests get 503 overloaded at once, uncounted, and those in progress are answered', async () => {
  const held: ServerResponse[] = [];
  const { gateway, key, backend } = await startSystem({
    config: { limits: { in_flight: 3 } },
    answer: (_req, res) => void held.push(res),
  });
  const sessions = await Promise.all(Array.from({ length: 4 }, () => openSession(gateway.public)));
  const [last, ...first] = sessions;
  if (last === undefined) throw new Error('there are four');
  for (const each of first) each.send(request(key));
  await expect.poll(() => held.length).toBe(3);
  const sentMs = performance.now();
  last.send(request(key) + request(key, '/v1/usage'));
  // The first at once, the second a second later.
  await expect.poll(() => last.statuses().length).toBeGreaterThan(0);
  await expect.poll(() => last.statuses()).toEqual([503, 503]);
  expect(performance.now() - sentMs).toBeGreaterThan(900);
  expect(last.received()).toMatch(/"code":"overloaded"/);
  expect(last.received()).toMatch(/^Retry-After: 1\r$/m);
  expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 3 });
  for (const res of held) res.end();
  await expect.poll(() => first.map((each) => each.statuses())).toEqual([[200], [200], [200]]);

  last.send(request(key));
  await expect.poll(() => held.length).toBe(4);
  held[3]?.end();
  await expect.poll(() => last.statuses()).toEqual([503, 503, 200]);
  expect(backend.seen).toHaveLength(4);
  expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(4);
  const refusals = await readMetric(gateway, 'tollgate_refusals_total');
  expect(refusals).toEqual({ 'problem="overloaded",plan="none"': 2 });
  expect(gateway.logs.filter(({ code }) => code === 'overloaded')).toHaveLength(2);
});

it('clients that leave give their places back', async () => {
  const { gateway, key, backend } = await startSystem({
    config: { limits: { in_flight: 2 } },
    answer: (req, res) => void (req.url?.endsWith('/hold') || res.end()),
  });
  for (let round = 1; round <= 3; round++) {
    const leaving = [await openSession(gateway.public), await openSession(gateway.public)];
    for (const each of leaving) each.send(request(key, '/v1/conversations/hold'));
    await expect.poll(() => backend.seen.length).toBe(2 * round);
    for (const each of leaving) each.socket.destroy();
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
  }
  const session = await openSession(gateway.public);
  session.send(request(key));
  await expect.poll(() => session.statuses()).toEqual([200]);
});
