/** Backends under load: what fails, hangs or changes concerns the routes of one backend only. */
import { Agent, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { bearer } from '../support/admin.ts';
import {
  openBackend,
  openHeldBackend,
  routesTo,
  type Sections,
  startWithBackends,
} from '../support/several-backends.ts';
import type { TestSystem } from '../support/system.ts';

const CUSTOMER_LIMIT = 10_000_000;
const PLANS = { starter: { requests_per_hour: CUSTOMER_LIMIT } };
const QUIET = { plans: PLANS, logging: { access: 'off' } };

interface Client {
  /** Resolves to the status, or to the error of the connection. */
  get(): Promise<number | string>;
}

function clientOf({ gateway, key }: TestSystem, backend: string, maxSockets: number): Client {
  const agent = new Agent({ keepAlive: true, maxSockets });
  onTestFinished(() => agent.destroy());
  const { hostname, port } = new URL(gateway.public);
  const options = { hostname, port, agent, path: `/${backend}/x`, headers: bearer(key) };
  return {
    get: () =>
      new Promise((resolve) => {
        request(options, (res) =>
          res.resume().once('close', () => resolve(res.complete ? (res.statusCode ?? 0) : 'cut')),
        )
          .once('error', (error) => resolve(error.message))
          .end();
      }),
  };
}

/** Sends this many requests, so many at once. Resolves to how often each result came. */
async function sendAll(client: Client, count: number, atOnce: number, durationsMs: number[] = []) {
  const results: Record<string, number> = {};
  let left = count;
  const caller = async () => {
    while (left-- > 0) {
      const startedMs = performance.now();
      const result = await client.get();
      durationsMs.push(performance.now() - startedMs);
      results[result] = (results[result] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, caller));
  return results;
}

function percentile(durationsMs: readonly number[], share: number): number {
  return durationsMs.toSorted((a, b) => a - b)[Math.floor(share * durationsMs.length)] ?? 0;
}

test('30,000 requests to three backends, one killed, one slow, a reload each second: failures only on the routes of those two', async () => {
  const [killed, slow] = [
    await openBackend(),
    await openBackend((_req, res) => void setTimeout(400).then(() => res.end())),
  ];
  const upstreams: Sections = {
    killed: { urls: [killed.url] },
    slow: { urls: [slow.url], response_timeout_ms: 200 },
  };
  const system = await startWithBackends(upstreams, QUIET);
  const { gateway } = system;
  let isOver = false;
  let reloads = 0;
  const reloading = (async () => {
    for (; !isOver; reloads++) {
      await setTimeout(1000);
      // Each adds or removes a backend, and changes the connections of the slow one and a timeout of the others.
      const added: Sections = reloads % 2 === 0 ? { added: { urls: [system.backend.url] } } : {};
      const changed: Sections = {
        killed: { ...upstreams.killed, response_timeout_ms: 20_000 + reloads },
        slow: { ...upstreams.slow, max_connections: 200 + reloads },
        ...added,
      };
      const routes = routesTo('default', ...Object.keys(changed));
      await rewrite(gateway, { upstreams: changed, routes });
      expect(await takeOver(gateway)).toBe('applied');
      if (reloads === 2) await killed.close();
    }
  })();
  const results = await Promise.all([
    sendAll(clientOf(system, 'default', 8), 20_000, 8),
    sendAll(clientOf(system, 'killed', 8), 9_500, 8),
    sendAll(clientOf(system, 'slow', 16), 500, 16),
  ]);
  isOver = true;
  await reloading;
  const [healthy, ofKilled, ofSlow] = results;
  expect(healthy).toEqual({ 200: 20_000 });
  expect(Object.keys(ofKilled).filter((status) => !['200', '502', '503'].includes(status))).toEqual([]);
  expect(ofSlow).toEqual({ 504: 500 });
  expect(reloads).toBeGreaterThan(2);
  expect(gateway.logs.filter(({ msg }) => msg === 'internal error')).toEqual([]);
}, 1_200_000);

test('2,000 requests that wait for a backend that hangs leave the other one alone', async () => {
  const hung = await openHeldBackend();
  const connections = { max_connections: 4000, max_connections_per_customer: 4000, response_timeout_ms: 600_000 };
  const system = await startWithBackends(
    { hung: { urls: [hung.url], ...connections } },
    { ...QUIET, limits: { in_flight: 4000 } },
  );
  const other = clientOf(system, 'default', 4);
  await sendAll(other, 2000, 4);
  const durationsMs: number[] = [];
  const hanging = clientOf(system, 'hung', 3000);
  const waiting: Promise<number | string>[] = [];
  while (waiting.length < 2000) {
    // Not all at once: a connection that is not made within two seconds is given up.
    waiting.push(...Array.from({ length: 50 }, () => hanging.get()));
    await expect.poll(() => hung.held.length, { timeout: 60_000 }).toBe(waiting.length);
  }
  // However long that took: the other one has work.
  expect(await other.get()).toBe(200);
  expect(await hanging.get()).toBe(503);
  expect(await sendAll(other, 5000, 4, durationsMs)).toEqual({ 200: 5000 });
  // Far from the 600 s that the others wait, whatever else the machine does.
  expect(percentile(durationsMs, 0.99)).toBeLessThan(5_000);
  for (const response of hung.held) response.end();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([200]));
}, 600_000);
