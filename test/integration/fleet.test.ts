/** "The same configuration everywhere" is a question about all gateways: any one of them must answer it for all. */
import { writeFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { tollgateHereFor } from '../cli/support.ts';
import { callAdmin } from '../support/admin.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';
import { INSTANCES_NAME, startRedisSystem } from '../support/redis-system.ts';

test('every gateway tells which configuration all gateways run', async () => {
  const { redis, backend, gateway } = await startRedisSystem();
  const other = await startTestGateway({
    storeUrl: redis.url,
    upstreamUrl: backend.url,
    config: { auth: { failures_per_minute: 299 } },
  });
  onTestFinished(() => other.close());
  // An instance of an earlier version tells nothing about itself.
  await redis.command('ZADD', INSTANCES_NAME, Date.now(), 'earlier');
  // And other programs may write anything.
  await redis.command('ZADD', INSTANCES_NAME, 'inf', 'no-time');
  await redis.command(
    'SET',
    'tollgate:instance:earlier',
    '{"host":"x","pid":1,"version":"x","configHash":"x","startedAtMs":1e300}',
  );
  const statusOf = async (asked: typeof gateway) => (await callAdmin(asked, '/status')).body;
  const [own, others] = [await statusOf(gateway), await statusOf(other)];
  expect(own.config.hash).not.toBe(others.config.hash);
  expect(own.fleet).toHaveLength(3);
  expect(own.fleet).toEqual(others.fleet);
  expect(own.fleet.map(({ config_hash: hash }: { config_hash: string }) => hash).toSorted()).toEqual(
    [own.config.hash, others.config.hash, null].toSorted(),
  );

  const refused = await tollgateHereFor(gateway)('status');
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain('run another configuration');
  expect(refused.stderr).toContain(others.config.hash);

  // A reload is told at once.
  const { auth: _auth, ...sections } = other.sections;
  const { listen, ops, admin } = gateway.sections;
  await writeFile(other.file, stringify({ ...sections, listen, ops, admin }));
  await other.reload('admin');
  await eventually('both run the same', async () => {
    const { fleet } = await statusOf(gateway);
    return new Set(fleet.map(({ config_hash: hash }: { config_hash: string }) => hash)).size === 2;
  });
  expect((await tollgateHereFor(gateway)('status')).status).toBe(0);

  await other.close();
  expect((await statusOf(gateway)).fleet).toHaveLength(2);
});

test('without the store, the status says that the others are not known', async () => {
  const { redis, gateway } = await startRedisSystem();
  await redis.kill();
  await eventually('it is noticed', async () => (await callAdmin(gateway, '/status')).body.fleet === null);
});
