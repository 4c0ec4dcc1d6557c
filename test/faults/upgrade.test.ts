/**
 * The last released version and this one serve together while gateways are replaced one by one, up and back, under load.
 * Needs the history of the repository, where the released version is.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { lastReleasedVersion } from '../../scripts/release-files.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { type RunningGateway, runProgram, startProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';
import { commitOf, type ReleasedVersion, unpackReleased } from '../support/released-version.ts';

const LIMIT = 40;
const PATIENCE = { timeout: 30_000, interval: 100 };
/** Requests of each client between two replacements. */
const REQUESTS = 40;
/** Six processes start one after the other, and are waited for. */
const TIMEOUT_MS = 360_000;

const version = lastReleasedVersion('.');
const commit = commitOf(version);
const title =
  commit === undefined
    ? `this version and ${version} (skipped: the history of this checkout lacks the commit of that release)`
    : `this version and the last released one, ${version},`;

describe.skipIf(commit === undefined)(title, () => {
  let released: ReleasedVersion;
  beforeAll(() => {
    released = unpackReleased(version, commit ?? '');
  });
  afterAll(() => released.remove());

  test('serve together on one Redis, up and back: no request is lost, limits are exact, and both read the same records, usage and history', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const receiver = await startNoticeReceiver();
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const file = await writeConfig({ storeUrl: redis.url, backend, notices: receiver.config });
    const start = (program?: string) => startProgram({ args: ['--config', file], ...(program && { program }) });
    const startOld = () => start(released.program);

    const gateways = [await startOld(), await startOld()];
    const [first] = gateways as [RunningGateway, RunningGateway];
    const keys = {
      limited: await createCustomerWithKey(first, { id: 'limited', plan: 'enterprise', requests_per_hour: LIMIT }),
      large: await createCustomerWithKey(first, { id: 'large', plan: 'business' }),
    };
    const statuses = new Set<string>();
    const send = async (customer: keyof typeof keys, index: number) => {
      const gateway = gateways[index % gateways.length];
      const response = await fetch(`${gateway?.public}/v1/conversations`, { headers: bearer(keys[customer]) });
      await response.arrayBuffer();
      statuses.add(`${customer} ${response.status}`);
    };
    const load = async () => {
      for (let i = 0; i < REQUESTS; i += 1) {
        await Promise.all([send('large', i), send('large', i + 1), i % 2 === 0 && send('limited', i / 2)]);
      }
    };
    /** As a rolling update: the new gateway serves before the old one is told to stop, which completes its requests. */
    const replace = async (next: RunningGateway) => {
      const before = gateways.shift();
      gateways.push(next);
      const loaded = load();
      before?.signal('SIGTERM');
      await loaded;
      expect((await before?.finished)?.status).toBe(0);
      const created = await createCustomerWithKey(next, { id: `of-${gateways.length}-${next.pid}`, plan: 'starter' });
      for (const gateway of gateways) {
        const answer = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(created) });
        expect(answer.status).toBe(200);
      }
    };

    await load();
    await replace(await start());
    await replace(await start());
    await replace(await startOld());
    const [newer, older] = gateways as [RunningGateway, RunningGateway];
    await load();

    expect(statuses).toEqual(new Set(['large 200', 'limited 200', 'limited 429']));
    const seenOf = (customer: string) =>
      backend.seen.filter(({ headers }) => headers['x-tollgate-customer'] === customer).length;
    expect(seenOf('limited')).toBe(LIMIT);
    for (const customer of ['limited', 'large']) {
      for (const gateway of [newer, older]) {
        const usage = async () => (await callAdmin(gateway, `/admin/v1/customers/${customer}/usage`)).body.used;
        // Units of open leases count until they are refunded.
        await expect.poll(usage, PATIENCE).toBe(seenOf(customer));
      }
    }
    for (const path of ['/admin/v1/customers?limit=100', '/admin/v1/keys?limit=100']) {
      const ids = async (gateway: RunningGateway) =>
        (await callAdmin(gateway, path)).body.items.map(({ id }: { id: string }) => id).toSorted();
      expect(await ids(newer)).toEqual(await ids(older));
    }
    const hours = async (gateway: RunningGateway) => {
      const { body } = await callAdmin(gateway, '/admin/v1/customers/large/usage/history');
      return body.points.reduce((sum: number, { requests }: { requests: number }) => sum + requests, 0);
    };
    for (const gateway of [newer, older]) await expect.poll(() => hours(gateway), PATIENCE).toBe(seenOf('large'));
    await expect.poll(() => receiver.received.map(({ type }) => type), PATIENCE).toContain('quota.exceeded');
    // A level that one version has reported may be reported once more by the other: 0.2.0 notes levels in another form.
    const levels = receiver.received.map(({ data: { customer, percent } }) => {
      return `${customer} ${[80, 95, 100].findLast((level) => level <= Number(percent))}`;
    });
    for (const level of new Set(levels)) {
      expect(['limited 80', 'limited 95', 'limited 100']).toContain(level);
      expect(levels.filter((each) => each === level).length, level).toBeLessThanOrEqual(2);
    }

    await replace(await startOld());
  });

  test.each([
    { order: 'the released one first', firstIsOld: true },
    { order: 'this one first', firstIsOld: false },
  ])(
    'count on one Redis together, one of them with a day and killed under load ($order): never above, history right, nothing damaged',
    { timeout: TIMEOUT_MS },
    async ({ firstIsOld }) => {
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      const backend = await startBackend();
      onTestFinished(() => backend.close());
      const plans = { starter: { requests_per_hour: 1000 }, enterprise: { requests_per_hour: 'custom' } };
      const business = { requests_per_hour: 20_000 };
      const files = {
        old: await writeConfig({ storeUrl: redis.url, backend, plans: { ...plans, business } }),
        // The released version knows no periods, and counts nothing in them.
        new: await writeConfig({
          storeUrl: redis.url,
          backend,
          plans: { ...plans, business: { ...business, period: { per: 'day', requests: 100_000 } } },
        }),
      };
      const start = async (isOld: boolean) => {
        const file = isOld ? files.old : files.new;
        const program = isOld ? { program: released.program } : {};
        return { isOld, ...(await startProgram({ args: ['--config', file], ...program })) };
      };
      const first = await start(firstIsOld);
      let gateways = [first];
      const keys = {
        limited: await createCustomerWithKey(first, { id: 'limited', plan: 'enterprise', requests_per_hour: LIMIT }),
        large: await createCustomerWithKey(first, { id: 'large', plan: 'business' }),
      };
      let servedByNew = 0;
      const send = async (customer: keyof typeof keys, index: number) => {
        const gateway = gateways[index % gateways.length];
        // A gateway that is killed answers nothing.
        const response = await fetch(`${gateway?.public}/v1/conversations`, { headers: bearer(keys[customer]) }).catch(
          () => undefined,
        );
        await response?.arrayBuffer().catch(() => undefined);
        if (customer === 'large' && response?.status === 200 && gateway?.isOld === false) servedByNew++;
      };
      const load = async () => {
        for (let i = 0; i < REQUESTS; i += 1) {
          await Promise.all([send('large', i), send('large', i + 1), i % 2 === 0 && send('limited', i / 2)]);
        }
      };
      const seenOf = (customer: string) =>
        backend.seen.filter(({ headers }) => headers['x-tollgate-customer'] === customer).length;
      const historyOf = async (gateway: RunningGateway | undefined, customer: string) => {
        if (gateway === undefined) return undefined;
        const { body } = await callAdmin(gateway, `/admin/v1/customers/${customer}/usage/history`);
        return body.points.reduce((sum: number, { requests }: { requests: number }) => sum + requests, 0);
      };

      await load();
      gateways.push(await start(!firstIsOld));
      await load();
      for (const gateway of gateways) {
        for (const customer of ['limited', 'large']) {
          await expect.poll(() => historyOf(gateway, customer), PATIENCE).toBe(seenOf(customer));
        }
      }
      const newer = gateways.find(({ isOld }) => !isOld) as RunningGateway;
      const period = async () => (await callAdmin(newer, '/admin/v1/customers/large/usage')).body.period?.used;
      await expect.poll(period, PATIENCE).toBe(servedByNew);

      // Each of the two, while both serve.
      for (const isOld of [true, false]) {
        const killed = gateways.find((each) => each.isOld === isOld);
        const loaded = load();
        killed?.signal('SIGKILL');
        await loaded;
        gateways = [...gateways.filter((each) => each !== killed), await start(isOld)];
        await load();
      }
      expect(seenOf('limited')).toBeLessThanOrEqual(LIMIT);
      for (const gateway of gateways) {
        for (const customer of ['limited', 'large']) {
          // Units of leases that were killed stay counted, and of others until they are refunded.
          const history = await historyOf(gateway, customer);
          expect(history).toBeGreaterThanOrEqual(seenOf(customer));
          expect(history).toBeLessThanOrEqual(seenOf(customer) + 4 * REQUESTS);
        }
      }
      const check = await runProgram({ args: ['store', 'check', '--config', files.new] });
      expect(check).toMatchObject({ status: 0 });
    },
  );

  test('share no SQLite file, but this one continues that of the other; back again, the old one names the reason', async () => {
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const file = await writeConfig({ storeUrl: 'sqlite:store.sqlite', backend });
    const read = async (gateway: RunningGateway, key: string) => {
      const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
      await response.arrayBuffer();
      return response.status;
    };
    const old = await startProgram({ args: ['--config', file], program: released.program });
    const key = await createCustomerWithKey(old, { id: 'acme', plan: 'enterprise', requests_per_hour: LIMIT });
    for (let i = 0; i < LIMIT / 2; i += 1) expect(await read(old, key)).toBe(200);
    const second = await runProgram({ args: ['start', '--config', file] });
    expect(second).toMatchObject({ status: 1 });
    expect(second.stderr).toContain('is in use by another process');
    old.signal('SIGTERM');
    await old.finished;

    const current = await startProgram({ args: ['--config', file] });
    const { body: usage } = await callAdmin(current, '/admin/v1/customers/acme/usage');
    expect(usage).toMatchObject({ limit: LIMIT, used: LIMIT / 2 });
    const statuses = [];
    for (let i = 0; i < LIMIT; i += 1) statuses.push(await read(current, key));
    expect(statuses.filter((status) => status === 200)).toHaveLength(LIMIT / 2);
    expect(backend.seen).toHaveLength(LIMIT);
    current.signal('SIGTERM');
    await current.finished;

    const back = await runProgram({ args: ['start', '--config', file], program: released.program });
    expect(back.status).toBe(1);
    expect(back.stderr).toMatch(/its schema is version \d+, this program knows version \d+/);
  });
});

async function writeConfig(parts: {
  readonly storeUrl: string;
  readonly backend: Backend;
  readonly notices?: Record<string, unknown>;
  readonly plans?: Record<string, unknown>;
}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-upgrade-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const anyPort = { host: '127.0.0.1', port: 0 };
  const { storeUrl, backend, notices, plans } = parts;
  const config = {
    listen: anyPort,
    ops: anyPort,
    admin: { ...anyPort, token: ADMIN_TOKEN },
    store: { url: storeUrl, ...(storeUrl.startsWith('redis') && { timeout_ms: 5000 }) },
    upstream: { urls: [backend.url] },
    shutdown: { not_ready_ms: 500 },
    logging: { access: 'off' },
    ...(notices && { notices }),
    ...(plans && { plans }),
  };
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, stringify(config));
  return file;
}
