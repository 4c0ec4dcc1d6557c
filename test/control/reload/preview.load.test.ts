/** What a file would change, and for whom: over the admin API and the command line, against real usage. */
import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { run, tollgateHereFor } from '../../cli/support.ts';
import { bearer, callAdmin, createCustomerWithKey, postPreview } from '../../support/admin.ts';
import { startShared } from '../../support/cleanup.ts';
import { STORES, type TestGateway } from '../../support/gateway.ts';
import { startSystem, type TestSystem } from '../../support/system.ts';

const PLANS = { starter: { requests_per_hour: 100 }, gold: { requests_per_hour: 50 }, idle: { requests_per_hour: 5 } };

async function use(gateway: TestGateway, key: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const answer = await fetch(`${gateway.public}/api/v1/conversations`, { headers: bearer(key) });
    expect(answer.status).toBe(200);
  }
}

/** Waits until units that were leased ahead are back in the store: until then they count as used there. */
async function settled(gateway: TestGateway, used: Readonly<Record<string, number>>): Promise<void> {
  for (const [customer, count] of Object.entries(used)) {
    await vi.waitFor(
      async () => {
        const { usage, instance } = (await callAdmin(gateway, `/admin/v1/customers/${customer}/explain`)).body;
        expect({ used: usage.used, leases: instance.leases }).toEqual({ used: count, leases: [] });
      },
      { timeout: 20_000 },
    );
  }
  // Previews read the usage of customers as this list does, which starts no thread.
  await vi.waitFor(
    async () => {
      const { items } = (await callAdmin(gateway, '/admin/v1/usage')).body;
      for (const { customer, used: seen } of items) expect([customer, seen]).toEqual([customer, used[customer] ?? 0]);
    },
    { timeout: 20_000 },
  );
}

const withPlans = (gateway: TestGateway, plans: object, rest: object = {}) =>
  stringify({ ...gateway.sections, ...rest, plans });

describe.each(STORES)('over $name', (store) => {
  /** acme has used 12 of starter's 100, big 9 of gold's 50, own 3 of its own 4, vip nothing. */
  const started = startShared(async (): Promise<TestSystem> => {
    const system = await startSystem({ store, config: { plans: PLANS, logging: { access: 'off' } } });
    const { gateway } = system;
    await use(gateway, system.key, 12);
    await use(gateway, await createCustomerWithKey(gateway, { id: 'big', plan: 'gold' }), 9);
    await use(gateway, await createCustomerWithKey(gateway, { id: 'own', plan: 'gold', requests_per_hour: 4 }), 3);
    await createCustomerWithKey(gateway, { id: 'vip', plan: 'gold' });
    await settled(gateway, { acme: 12, big: 9, own: 3 });
    return system;
  });

  test('limits that change, and customers that would be refused or are near, are shown, and nothing is applied', async () => {
    const { gateway, key } = started();
    const content = withPlans(
      gateway,
      { starter: { requests_per_hour: 10 }, gold: { requests_per_hour: 60 }, idle: PLANS.idle },
      { overrides: { big: { requests_per_hour: 10 } } },
    );
    const { status, body } = await postPreview(gateway, content);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      reload: 'applied',
      dropped_plans: [],
      customers: { total: 4, raised: 1, lowered: 2, gained: 0, lost: 0, refused: 1, newly_refused: 1, near: 1 },
    });
    expect(body.hash).not.toBe(body.running_hash);
    expect(body.changes.map(({ text }: { text: string }) => text)).toEqual([
      'plans.starter.requests_per_hour: 100 → 10',
      'plans.gold.requests_per_hour: 50 → 60',
      'overrides.big: none → { requests_per_hour: 10 }',
    ]);
    expect(body.limits).toHaveLength(3);
    expect(body.limits).toEqual(
      expect.arrayContaining([
        { change: 'starter 100 → 10', window: 'hourly', customers: 1, refused: 1 },
        { change: 'gold 50 → 60', window: 'hourly', customers: 1, refused: 0 },
        { change: 'overrides', window: 'hourly', customers: 1, refused: 0 },
      ]),
    );
    const nameless = { customer_name: null };
    expect(body.closest).toEqual([
      {
        ...nameless,
        customer: 'acme',
        plan: 'starter',
        window: 'hourly',
        limit_before: 100,
        limit_after: 10,
        used: 12,
        ratio: 1.2,
        state: 'refused',
      },
      {
        ...nameless,
        customer: 'big',
        plan: 'gold',
        window: 'hourly',
        limit_before: 50,
        limit_after: 10,
        used: 9,
        ratio: 0.9,
        state: 'near',
      },
    ]);
    await use(gateway, key, 1);
    expect((await callAdmin(gateway, '/status')).body.config).toMatchObject({ hash: body.running_hash });
  });

  test('plans with customers, and keys that need a restart, are shown before a reload is refused for them', async () => {
    const { gateway } = started();
    const dropping = (await postPreview(gateway, withPlans(gateway, { gold: PLANS.gold }))).body;
    expect(dropping).toMatchObject({
      reload: 'plan_in_use',
      dropped_plans: [{ plan: 'starter', customers: 1 }],
      customers: { lost: 1, refused: 1, newly_refused: 1 },
      closest: [{ customer: 'acme', limit_after: null, ratio: null, state: 'refused' }],
    });
    const moved = (await postPreview(gateway, withPlans(gateway, PLANS, { listen: { host: '127.0.0.1', port: 1 } })))
      .body;
    expect(moved).toMatchObject({ reload: 'restart_required', customers: { total: 4, lowered: 0 } });
    expect(moved.changes).toMatchObject([{ key: 'listen.port', takes_effect: 'restart', before: 0, after: 1 }]);
    expect((await postPreview(gateway, withPlans(gateway, PLANS))).body).toMatchObject({
      reload: 'unchanged',
      changes: [],
    });
  });
});

test('whom a new, lower or higher month would refuse is shown by window, and each customer counts once, by its worst', async () => {
  const month = (requests: number, beyond = 'refuse') => ({ period: { per: 'month', requests, beyond } });
  const plans = {
    starter: { requests_per_hour: 100, ...month(50) },
    gold: { requests_per_hour: 100 },
    metered: { requests_per_hour: 100, ...month(50, 'allow') },
  };
  const { gateway, key } = await startSystem({ config: { plans } });
  await use(gateway, key, 12);
  const own = { id: 'own', plan: 'starter', period_requests: 10 };
  for (const customer of [{ id: 'new', plan: 'gold' }, own, { id: 'metered', plan: 'metered' }]) {
    await use(gateway, await createCustomerWithKey(gateway, customer), 9);
  }
  await settled(gateway, { acme: 12, new: 9, own: 9, metered: 9 });
  const next = {
    starter: { requests_per_hour: 12, ...month(10) },
    gold: { requests_per_hour: 200, ...month(10) },
    metered: { requests_per_hour: 100, ...month(5, 'allow') },
  };
  const { body } = await postPreview(gateway, withPlans(gateway, next));
  expect(body.customers).toMatchObject({ total: 4, raised: 0, lowered: 3, refused: 1, newly_refused: 1, near: 1 });
  expect(body.limits).toEqual(
    expect.arrayContaining([
      { change: 'starter 100 → 12', window: 'hourly', customers: 2, refused: 1 },
      { change: 'starter 50 → 10 per month', window: 'monthly', customers: 1, refused: 1 },
      { change: 'gold 100 → 200', window: 'hourly', customers: 1, refused: 0 },
      // A month counts from when it is applied.
      { change: 'gold none → 10 per month', window: 'monthly', customers: 1, refused: 0 },
    ]),
  );
  expect(body.limits).toHaveLength(4);
  expect(body.closest).toMatchObject([
    { customer: 'acme', window: 'monthly', limit_before: 50, limit_after: 10, used: 12, ratio: 1.2, state: 'refused' },
    { customer: 'own', window: 'monthly', limit_before: 10, limit_after: 10, used: 9, ratio: 0.9, state: 'near' },
  ]);
  // Without its limit, a period refuses nobody.
  const none = { starter: { requests_per_hour: 100 }, gold: plans.gold, metered: { requests_per_hour: 100 } };
  const { body: without } = await postPreview(gateway, withPlans(gateway, none));
  expect(without).toMatchObject({
    customers: { raised: 2, lowered: 0, refused: 0, near: 0 },
    closest: [],
  });
  expect(without.limits).toMatchObject([
    { change: 'starter 50 → none per month', customers: 1, refused: 0 },
    { change: 'starter 10 → none per month', customers: 1, refused: 0 },
  ]);
});

test('a file with faults is refused with all of them, and one that is not YAML by its type', async () => {
  const { gateway } = await startSystem();
  const { status, body } = await postPreview(gateway, 'plans: {}\nnonsense: 1');
  expect(status).toBe(422);
  expect(body.code).toBe('unprocessable');
  expect(body.detail).toMatch(/^\(posted\):2: nonsense: unknown key/m);
  expect(body.detail).toMatch(/upstream: is required/);
  expect((await postPreview(gateway, '{}', 'application/json')).status).toBe(415);
  expect((await postPreview(gateway, '', 'text/yaml')).status).toBe(422);
  expect((await postPreview(gateway, `# ${'x'.repeat(1024 * 1024)}`)).status).toBe(413);
});

test('the command prints tables for people and the document for programs', async () => {
  const { gateway, key } = await startSystem({ config: { plans: PLANS } });
  await use(gateway, key, 6);
  await settled(gateway, { acme: 6 });
  const tollgate = tollgateHereFor(gateway);
  const file = `${gateway.file}.next`;
  await writeFile(file, withPlans(gateway, { ...PLANS, starter: { requests_per_hour: 5 } }));
  const { status, stdout, stderr } = await tollgate('preview', file);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^reload +would be applied$/m);
  expect(stdout).toMatch(/^refused now +1, 1 of them by this$/m);
  expect(stdout).toMatch(/^reload +plans\.starter\.requests_per_hour: 100 → 5$/m);
  expect(stdout).toMatch(/^ +1 +1 +starter 100 → 5$/m);
  expect(stdout).toMatch(/^refused +hourly +6 +100 +5 +1\.2 +starter +acme$/m);
  const { stdout: json } = await tollgate('preview', file, '--json');
  expect(JSON.parse(json)).toMatchObject({ reload: 'applied', customers: { refused: 1 } });

  await writeFile(file, `${await readFile(file, 'utf8')}\nnonsense: 1\n`);
  const faulty = await tollgate('preview', file);
  expect(faulty).toMatchObject({ status: 1, stdout: '' });
  expect(faulty.stderr).toMatch(new RegExp(`^${file.replaceAll('.', '\\.')}:\\d+: nonsense: unknown key`, 'm'));
  expect(await tollgate('preview', `${file}-that-is-not-there`)).toMatchObject({ status: 1 });
  expect((await run(process.execPath, ['src/main.ts', 'preview', file])).status).toBe(2);
});

test('the running file without its secrets can be read, changed and previewed: a hidden secret stands for the running one', async () => {
  const realm = `\${${'REALM'}:-none}`;
  const secret = `whsec_${Buffer.alloc(24, 'marked').toString('base64')}`;
  const { gateway } = await startSystem({
    environment: { REALM: 'of-the-environment' },
    config: {
      plans: PLANS,
      auth: { realm },
      upstream: { credentials: 'replace', authorization: 'Basic marked' },
      notices: { endpoints: [{ url: 'https://hooks.example/x', secret }] },
    },
  });
  const tollgate = tollgateHereFor(gateway);
  const { stdout } = await tollgate('config', 'show', '--file');
  const { store, admin, ...others } = gateway.sections;
  expect(parse(stdout)).toEqual({
    ...others,
    admin: { ...admin, token: '(secret)' },
    store: { ...store, url: expect.stringMatching(/^(?:redis|sqlite|unix):/) },
    upstream: { ...others.upstream, authorization: '(secret)' },
    notices: { endpoints: [{ url: 'https://hooks.example/x', secret: '(secret)' }] },
  });
  expect(Object.keys(parse(stdout))).toEqual(Object.keys(gateway.sections));
  expect(stdout).toContain(`realm: ${realm}`);

  const { body } = await postPreview(gateway, stdout);
  expect(body).toMatchObject({ reload: 'unchanged', changes: [], hash: body.running_hash });
  const changed = await postPreview(gateway, stdout.replace('requests_per_hour: 100', 'requests_per_hour: 5'));
  expect(changed.body).toMatchObject({ reload: 'applied', changes: [{ key: 'plans.starter.requests_per_hour' }] });
});
