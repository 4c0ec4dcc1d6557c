import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';
import { openSession, request } from './support.ts';

const OVERLOADED = 'problem="overloaded",plan="none"';

it('at the limit of connections, the oldest that never asked gives way to a newcomer', async () => {
  const { gateway, key } = await startSystem({ config: { limits: { connections: 3 } } });
  const kept = await openSession(gateway.public);
  kept.send(request(key));
  await expect.poll(() => kept.statuses()).toEqual([200]);
  const silent = await openSession(gateway.public);
  const slow = await openSession(gateway.public);
  slow.send('GET /v1/conversations HTTP/1.1\r\nHo');
  // Anyone has a second to begin with.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  const newcomer = await openSession(gateway.public);
  newcomer.send(request(key));
  await expect.poll(() => newcomer.statuses()).toEqual([200]);
  await silent.closed;
  expect(silent.received()).toBe('');
  const second = await openSession(gateway.public);
  second.send(request(key));
  await expect.poll(() => second.statuses()).toEqual([200]);
  await slow.closed;
  kept.send(request(key));
  await expect.poll(() => kept.statuses()).toEqual([200, 200]);
  expect(await readMetric(gateway, 'tollgate_connections_cut_total')).toMatchObject({ 'reason="displaced"': 2 });
  expect(await readMetric(gateway, 'tollgate_connections')).toEqual({ '': 3 });
});

it('at the limit of connections, one without a request in progress gives way, and one with a request does not', async () => {
  const held: ServerResponse[] = [];
  const { gateway, key } = await startSystem({
    config: { limits: { connections: 2 } },
    answer: (req, res) => void (req.url?.endsWith('/hold') ? held.push(res) : res.end()),
  });
  const busy = await openSession(gateway.public);
  busy.send(request(key, '/v1/conversations/hold'));
  await expect.poll(() => held.length).toBe(1);
  const idle = await openSession(gateway.public);
  idle.send(request(key));
  await expect.poll(() => idle.statuses()).toEqual([200]);
  const newcomer = await openSession(gateway.public);
  newcomer.send(request(key));
  await expect.poll(() => newcomer.statuses()).toEqual([200]);
  await idle.closed;
  held[0]?.end();
  await expect.poll(() => busy.statuses()).toEqual([200]);
});

it('when all connections are busy, a new one gets 503 overloaded with Retry-After', async () => {
  const held: ServerResponse[] = [];
  const { gateway, key, backend } = await startSystem({
    config: { limits: { connections: 2 } },
    answer: (_req, res) => void held.push(res),
  });
  const busy = [await openSession(gateway.public), await openSession(gateway.public)];
  for (const each of busy) each.send(request(key));
  await expect.poll(() => held.length).toBe(2);
  const newcomer = await openSession(gateway.public);
  newcomer.send(request(key));
  await newcomer.closed;
  expect(newcomer.statuses()).toEqual([503]);
  expect(newcomer.received()).toMatch(/"code":"overloaded"/);
  expect(newcomer.received()).toMatch(/^Retry-After: 1\r$/m);
  expect(newcomer.received()).toMatch(/^Connection: close\r$/m);
  for (const res of held) res.end();
  await expect.poll(() => busy.map((each) => each.statuses())).toEqual([[200], [200]]);
  expect(backend.seen).toHaveLength(2);
  expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({ [OVERLOADED]: 1 });
  expect(gateway.logs.filter(({ code }) => code === 'overloaded')).toHaveLength(1);
});

it('many more connections than the limit are cut unread, and there are never more than the limit and a few', async () => {
  const held: ServerResponse[] = [];
  const { gateway, key } = await startSystem({
    config: { limits: { connections: 1 } },
    answer: (_req, res) => void held.push(res),
  });
  const busy = await openSession(gateway.public);
  busy.send(request(key));
  await expect.poll(() => held.length).toBe(1);
  const flood = await Promise.all(Array.from({ length: 700 }, () => openSession(gateway.public)));
  await expect.poll(() => flood.filter((each) => each.isClosed()).length).toBeGreaterThanOrEqual(700 - 512);
  const cut = await readMetric(gateway, 'tollgate_connections_cut_total');
  // Displaced if it was silent for a second: on a busy machine, the first ones of the flood.
  const { 'reason="surplus"': surplus = 0, 'reason="displaced"': displaced = 0 } = cut;
  expect(surplus + displaced).toBeGreaterThanOrEqual(700 - 512);
  held[0]?.end();
  await expect.poll(() => busy.statuses()).toEqual([200]);
});
