/** Refused and failed requests, while a customer and an address flood two gateways, one is killed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { agentOfTest, request, startWithWorkers } from '../process/workers/support.ts';
import { callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { closeAtEnd } from '../support/cleanup.ts';
import { startTestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';

/** A request is found after so long. */
const FOUND = { timeout: 10_000, interval: 200 };
const ENTRIES = 500;

it('what others need stays, in every instance and in bounds, and a kill loses no more than ten seconds', async () => {
  const config = { requests: { hours: 24, entries: ENTRIES } };
  const loud = { id: 'loud', plan: 'enterprise', requests_per_hour: 1 };
  const answer = (_req: IncomingMessage, res: ServerResponse) => void res.writeHead(503).end();
  const { gateway, backend, key, storeUrl } = await startWithWorkers({ config, customer: loud, answer });
  const urls = { storeUrl, upstreamUrl: backend.url };
  const second = await startTestGateway({ ...urls, config: config as never });
  closeAtEnd(() => second.close());
  const quietKey = await createCustomerWithKey(gateway, { id: 'quiet', plan: 'starter' });

  const fail = async (at: { readonly public: string }, requestId: string) => {
    const headers = { authorization: `Bearer ${quietKey}`, 'x-request-id': requestId };
    expect((await fetch(`${at.public}/v1/conversations`, { headers })).status).toBe(503);
  };
  const found = async (requestId: string) =>
    (await callAdmin(second, `/admin/v1/requests/${requestId}`)).body.items?.length;

  const agent = agentOfTest({ keepAlive: true, maxSockets: 20 });
  let isFlooding = true;
  const flood = [gateway, second].map(async (at) => {
    while (isFlooding) {
      const keys = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? key : `unknown-key-of-the-flood-${i}`));
      await Promise.allSettled(keys.map((each) => request(agent, at.public, each)));
    }
  });
  for (let at = 0; at < 12; at++) {
    await fail(at % 2 === 0 ? gateway : second, `quiet-${at}`);
    await sleep(1000);
  }
  const early = ['quiet-0', 'quiet-1', 'quiet-2', 'quiet-3'];
  for (const requestId of early) await expect.poll(() => found(requestId), FOUND).toBe(1);
  const { body } = await callAdmin(second, '/admin/v1/requests?limit=1000');
  expect(body.items.length).toBeLessThanOrEqual(ENTRIES);
  expect(body.items.length).toBeGreaterThan(ENTRIES / 2);
  expect(Object.values(await readMetric(gateway, 'tollgate_failed_requests_dropped_total'))[0]).toBeGreaterThan(0);

  process.kill(gateway.pid, 'SIGKILL');
  isFlooding = false;
  await Promise.allSettled(flood);
  await fail(second, 'after-the-kill');
  await expect.poll(() => found('after-the-kill'), FOUND).toBe(1);
  for (const requestId of early) expect(await found(requestId)).toBe(1);
});
