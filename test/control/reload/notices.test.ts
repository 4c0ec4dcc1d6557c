/** Endpoints, their secrets and the levels of notices change while the gateway runs. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { newWebhookSecret } from '../../../src/formats/webhook-signature.ts';
import { bearer, callAdmin } from '../../support/admin.ts';
import { readMetric } from '../../support/metrics.ts';
import { startSystem, type TestSystem } from '../../support/system.ts';
import { rewrite } from './support.ts';

const [FIRST, SECOND] = [newWebhookSecret(), newWebhookSecret()];
const PATIENCE = { timeout: 30_000, interval: 50 };

/** A receiver that notes which of the secrets verify each notice. */
async function startReceiver() {
  const received: { type: string; limit: number; verifiedBy: string[] }[] = [];
  const server = createServer(async (req, res) => {
    const body = await text(req);
    const verifies = (secret: string) => {
      try {
        return Boolean(new Webhook(secret).verify(body, req.headers as Record<string, string>));
      } catch {
        return false;
      }
    };
    const { type, data } = JSON.parse(body);
    received.push({ type, limit: data.limit, verifiedBy: [FIRST, SECOND].filter(verifies) });
    res.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

async function use({ gateway, key }: TestSystem, requests: number): Promise<void> {
  for (let i = 0; i < requests; i++) {
    const response = await fetch(`${gateway.public}/api/v1/conversations`, { headers: bearer(key) });
    await response.arrayBuffer();
  }
}

test('notices are switched on, signed with two secrets while one is rotated, and switched off by reloads', async () => {
  const receiver = await startReceiver();
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-notices-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const secret_file = join(folder, 'notices.secret');
  const endpoints = [{ url: receiver.url, secret_file, allow_private: true }];
  const plans = (requests_per_hour: number) => ({ starter: { requests_per_hour } });
  const system = await startSystem({ config: { plans: plans(10) } });
  const reload = async (config: Record<string, Record<string, unknown>>) => {
    await rewrite(system.gateway, config);
    await callAdmin(system.gateway, '/admin/v1/config/reload', { method: 'POST' });
  };

  await use(system, 5);
  await writeFile(secret_file, `${FIRST}\n`);
  await reload({ plans: plans(10), notices: { endpoints, levels: [] } });
  await use(system, 5);
  await expect
    .poll(() => receiver.received, PATIENCE)
    .toEqual([{ type: 'quota.exceeded', limit: 10, verifiedBy: [FIRST] }]);

  await writeFile(secret_file, `${SECOND}\n${FIRST}\n`);
  await reload({ plans: plans(20), notices: { endpoints, levels: [] } });
  await use(system, 10);
  await expect
    .poll(() => receiver.received.slice(1), PATIENCE)
    .toEqual([{ type: 'quota.exceeded', limit: 20, verifiedBy: [FIRST, SECOND] }]);

  const undelivered = () => readMetric(system.gateway, 'tollgate_notices_undelivered');
  await expect.poll(async () => Object.keys(await undelivered()), PATIENCE).toHaveLength(2);
  await reload({ plans: plans(30) });
  await use(system, 10);
  expect((await callAdmin(system.gateway, '/status')).body.notices).toBeNull();
  expect(await undelivered()).toEqual({});
  expect(receiver.received).toHaveLength(2);
});
