/**
 * Hundreds of clients that send requests without a key to a slow route and never stop, and a few customers beside them.
 * The backend holds each of these requests: what they occupy, they keep.
 */
import { expect, it, onTestFinished } from 'vitest';
import { bearer } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';
import { openSession } from './support.ts';

const CLIENTS = 300;
/** A quarter of each is for requests without a key: 50 requests, 16 connections. */
const LIMITS = { limits: { in_flight: 200 }, upstream: { max_connections: 64 } };
const ROUTES = [
  { path: '/slow', methods: ['GET'], key: 'none' },
  { path: '/hooks', methods: ['POST'], key: 'none' },
  { path: '/things/{id}', methods: ['GET', 'POST'] },
];

const addressOf = (client: number) => `192.0.${client >> 8}.${client & 255}`;

it('a flood of requests without a key to a slow route takes nothing from customers', async () => {
  let held = 0;
  let mostHeld = 0;
  const listen = { trusted_proxies: ['127.0.0.1'] };
  const { gateway, key } = await startSystem({
    config: { ...LIMITS, listen, routes: ROUTES as never, aliases: {}, usage_path: '/usage' as never },
    customer: { id: 'acme', plan: 'business' },
    answer(req, res) {
      if (!req.url?.startsWith('/slow')) return void res.end('{}');
      mostHeld = Math.max(mostHeld, ++held);
      res.once('close', () => held--);
    },
  });

  let refused = 0;
  for (let client = 0; client < CLIENTS; client++) {
    const session = await openSession(gateway.public);
    const from = `Host: a\r\nX-Forwarded-For: ${addressOf(client)}\r\n`;
    // Every third client sends one byte of a body.
    const ask =
      client % 3 === 0
        ? () => session.send(`POST /hooks HTTP/1.1\r\n${from}Content-Length: 100\r\n\r\nx`)
        : () => session.send(`GET /slow HTTP/1.1\r\n${from}\r\n`);
    let statuses = 0;
    session.socket.on('data', () => {
      const now = session.statuses().length;
      if (now === statuses) return;
      statuses = now;
      refused++;
      if (!session.isClosed()) ask();
    });
    ask();
  }
  await expect.poll(() => refused).toBeGreaterThan(CLIENTS);
  expect(held).toBeGreaterThan(0);

  const statuses = new Map<number, number>();
  const customer = async () => {
    for (let i = 0; i < 30; i++) {
      const method = i % 2 === 0 ? 'GET' : 'POST';
      const body = method === 'POST' ? 'x'.repeat(1000) : null;
      const answer = await fetch(`${gateway.public}/things/${i}`, { method, headers: bearer(key), body });
      await answer.arrayBuffer();
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    }
  };
  // As many at once as the quarters leave connections.
  await Promise.all(Array.from({ length: 48 }, customer));
  expect(statuses).toEqual(new Map([[200, 48 * 30]]));
  expect(mostHeld).toBeLessThanOrEqual(16);
  const { '': inFlight = 0 } = await readMetric(gateway, 'tollgate_inflight_requests');
  expect(inFlight).toBeLessThanOrEqual(50);
  const refusals = await readMetric(gateway, 'tollgate_refusals_total');
  expect(Object.keys(refusals).every((labels) => labels.endsWith('plan="none"'))).toBe(true);
  onTestFinished(() => gateway.close());
});
