/**
 * A restart with a file that drops a plan was silent: all customers on it got 403, while `/status`, the console and
 * `tollgate status` said that all was well. A reload refused the same file.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { tryConnections } from '../../src/process/try-connections.ts';
import { load } from '../config/support.ts';
import { callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startTestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startRedis } from '../support/redis-server.ts';

const UPSTREAM = 'http://127.0.0.1:9';
const PLANS = { starter: { requests_per_hour: 10 }, gold: { requests_per_hour: 20 } };
const METRIC = 'tollgate_customers_without_plan';

test('customers on a plan that the file of a restart drops are reported, until they have a plan again', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const start = async (plans: Record<string, Record<string, unknown>>) => {
    const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: UPSTREAM, config: { plans } });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  const first = await start(PLANS);
  await createCustomerWithKey(first, { id: 'acme', plan: 'gold' });
  await createCustomerWithKey(first, { id: 'globex', plan: 'starter' });
  const countIn = async (gateway: typeof first) => (await callAdmin(gateway, '/status')).body.customers_without_plan;
  await expect.poll(() => countIn(first)).toEqual({ customers: 0, plans: [] });
  expect(await readMetric(first, METRIC)).toEqual({ '': 0 });
  await first.close();

  const second = await start({ starter: PLANS.starter });
  await expect.poll(() => countIn(second)).toEqual({ customers: 1, plans: ['gold'] });
  const { problems } = (await callAdmin(second, '/status')).body;
  expect(problems).toMatchObject([{ what: expect.stringContaining('not configured: 1.'), detail: 'gold' }]);
  expect(await readMetric(second, METRIC)).toEqual({ '': 1 });
  expect(second.logs.filter(({ msg }) => String(msg).includes('not configured'))).toMatchObject([
    { level: 'error', customers: 1, plans: ['gold'] },
  ]);

  const text = await readFile(second.file, 'utf8');
  await writeFile(second.file, text.replace('starter:\n', 'starter:\n    formerly: [gold]\n'));
  expect(await second.reload('admin')).toMatchObject({ problems: [] });
  await expect.poll(() => countIn(second)).toEqual({ customers: 0, plans: [] });
  expect((await callAdmin(second, '/status')).body.problems).toEqual([]);
});

test('check-config --connect finds them before the restart', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const findings = async () => {
    const file = `store: { url: "${redis.url}" }\nupstream: { urls: ["${UPSTREAM}"] }\nplans: { starter: { requests_per_hour: 10 } }\n`;
    return (await tryConnections(await load(file))).filter(({ subject }) => subject === 'plans of the customers');
  };
  await redis.command('HSET', 'tollgate:customer:{globex}', 'plan', 'starter');
  expect(await findings()).toEqual([]);
  await redis.command('HSET', 'tollgate:customer:{acme}', 'plan', 'gold');
  expect(await findings()).toMatchObject([
    { outcome: 'error', text: expect.stringContaining('not configured: 1 (gold)') },
  ]);
});
