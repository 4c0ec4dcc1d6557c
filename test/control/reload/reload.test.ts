import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { tollgateHereFor } from '../../cli/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/metrics.ts';
import { startSystem, type TestSystem } from '../../support/system.ts';
import { messages, rewrite, sawLine, takeOver } from './support.ts';

const PLANS = { starter: { requests_per_hour: 100 }, gold: { requests_per_hour: 50 } };
const PATH = '/api/v1/conversations';

const start = (config: Record<string, Record<string, unknown>> = {}) =>
  startSystem({ config: { plans: PLANS, logging: { access: 'off' }, ...config } });

const read = ({ gateway, key }: TestSystem, path = PATH) => fetch(gateway.public + path, { headers: bearer(key) });

const limitOf = (answer: Response) => answer.headers.get('x-ratelimit-limit');

test('a changed file is detected, applied as a whole, and logged in plain words', async () => {
  const system = await start();
  const { gateway } = system;
  for (let i = 0; i < 30; i++) await read(system);
  const before = (await callAdmin(gateway, '/status')).body.config;
  expect(before).toMatchObject({ file: gateway.file, last_reload: null });

  await rewrite(gateway, { plans: { ...PLANS, starter: { requests_per_hour: 20 } } });
  await sawLine(gateway, /^configuration reloaded: plans\.starter\.requests_per_hour: 100 → 20$/);
  await sawLine(gateway, /^starter 100 → 20: 1 customer is above it now$/);
  const refused = await read(system);
  expect(refused.status).toBe(429);
  expect(limitOf(refused)).toBe('20');

  const { config } = (await callAdmin(gateway, '/status')).body;
  expect(config).toMatchObject({ file: gateway.file, last_reload: { result: 'applied', error: null } });
  expect(config.hash).not.toBe(before.hash);
  expect(await readMetric(gateway, 'tollgate_config_info')).toEqual({ [`hash="${config.hash}"`]: 1 });
  expect(await readMetric(gateway, 'tollgate_config_reloads_total')).toMatchObject({ 'result="applied"': 1 });
  const [loadedAt] = Object.values(await readMetric(gateway, 'tollgate_config_last_success_timestamp_seconds'));
  expect(loadedAt).toBe(Date.parse(config.loaded_at) / 1000);
  expect((await callAdmin(gateway, '/admin/v1/config')).body.plans.starter.requests_per_hour).toBe(20);
});

test.each([
  ['is unreadable as YAML', 'plans: [', 'invalid', /plans|YAML/],
  ['is empty', '', 'invalid', /is empty/],
  ['has a wrong type', { plans: { starter: { requests_per_hour: 'many' } } }, 'invalid', /requests_per_hour/],
  ['has an unknown key', { planz: {} }, 'invalid', /planz: unknown key, perhaps plans is meant/],
  [
    'changes an address',
    { ops: { host: '127.0.0.1', port: 1 } },
    'restart_required',
    /ops\.port: 0 → 1: needs a restart/,
  ],
  [
    'changes what can be taken over and what cannot',
    { store: { url: 'redis://127.0.0.1:1' }, plans: { starter: { requests_per_hour: 7 } } },
    'restart_required',
    /store/,
  ],
  [
    'drops a plan that customers hold',
    { plans: { gold: { requests_per_hour: 50 } } },
    'plan_in_use',
    /plans\.starter: 1 customer is on this plan, which the file drops/,
  ],
] as const)('a file that %s changes nothing, and is reported', async (_, content, result, reason) => {
  const system = await start();
  const { gateway } = system;
  const { hash } = (await callAdmin(gateway, '/status')).body.config;
  if (typeof content === 'string') await writeFile(gateway.file, content);
  else await rewrite(gateway, content);
  const outcome = await gateway.reload('signal');
  expect(outcome).toMatchObject({ result, hash });
  expect(outcome.problems.join('\n')).toMatch(reason);

  expect(limitOf(await read(system))).toBe('100');
  const { config } = (await callAdmin(gateway, '/status')).body;
  expect(config).toMatchObject({ hash, last_reload: { result } });
  expect(config.last_reload.error).toMatch(reason);
  const counted = (await readMetric(gateway, 'tollgate_config_reloads_total'))[`result="${result}"`];
  expect(counted).toBeGreaterThanOrEqual(1);
  expect(await readMetric(gateway, 'tollgate_config_reload_failing')).toEqual({ '': 1 });
  const line = await sawLine(gateway, /^configuration refused/);
  expect(line).toMatchObject({ level: 'error', result });

  await rewrite(gateway, {});
  expect(await gateway.reload('signal')).toMatchObject({ result: 'unchanged' });
  expect(await readMetric(gateway, 'tollgate_config_reload_failing')).toEqual({ '': 0 });
});

test('a missing or unreadable file is reported once, and noticed when it is back', async () => {
  const system = await start();
  const { gateway } = system;
  await rm(gateway.file);
  await sawLine(gateway, /cannot be read: there is no such file/);
  await writeFile(gateway.file, 'plans: {}');
  await chmod(gateway.file, 0);
  // For root every file is readable.
  await sawLine(gateway, /permission denied|is required/);
  await chmod(gateway.file, 0o600);
  await rewrite(gateway, { plans: { starter: { requests_per_hour: 33 } } });
  await sawLine(gateway, /^configuration reloaded/);
  expect(limitOf(await read(system))).toBe('33');
  expect(messages(gateway).filter((message) => /there is no such file/.test(message))).toHaveLength(1);
});

test('changed limits are logged with the plan, the customer where an override changes it, and both limits', async () => {
  const { gateway } = await start();
  const plans = { ...PLANS, gold: { requests_per_hour: 60 } };
  await rewrite(gateway, { plans, overrides: { acme: { requests_per_hour: 7 }, nobody: { requests_per_hour: 8 } } });
  const line = await sawLine(gateway, /^the limit of customer acme changes: 100 → 7$/);
  expect(line).toMatchObject({ customer: 'acme', plan: 'starter', before: 100, after: 7, used: 0 });
  const gold = await sawLine(gateway, /^gold 50 → 60: 0 customers are above it now$/);
  expect(gold).toMatchObject({ plan: 'gold', before: 50, after: 60, customers: 0, above_now: 0 });
});

test('a plan that has another name now is held by the customers of its former name', async () => {
  const system = await start();
  const { gateway } = system;
  const renamed = { plans: { basic: { requests_per_hour: 40, formerly: ['starter'] }, gold: PLANS.gold } };
  const changes = ['plan starter is now basic', 'plans.basic.requests_per_hour: 100 → 40'];
  const file = `${gateway.file}.next`;
  await writeFile(file, stringify({ ...gateway.sections, ...renamed }));
  const { stdout } = await tollgateHereFor(gateway)('preview', file);
  for (const change of changes) expect(stdout).toContain(` ${change}\n`);
  await rewrite(gateway, renamed);
  expect(await takeOver(gateway)).toBe('applied');
  await sawLine(
    gateway,
    /^configuration reloaded: plan starter is now basic; plans\.basic\.requests_per_hour: 100 → 40$/,
  );
  expect((await callAdmin(gateway, '/status')).body.config.last_reload.changes).toEqual(changes);
  expect((await tollgateHereFor(gateway)('status')).stdout).toContain(`LAST RELOAD\n${changes.join('\n')}\n`);
  expect(await sawLine(gateway, /^basic 100 → 40: /)).toMatchObject({ plan: 'basic', before: 100, after: 40 });
  const answer = await read(system);
  expect(answer.status).toBe(200);
  expect(limitOf(answer)).toBe('40');
  expect(system.backend.seen.at(-1)?.headers['x-tollgate-plan']).toBe('basic');
  const usage = await (await read(system, '/api/v1/usage')).json();
  expect(usage).toMatchObject({ plan: 'basic', limit: 40, used: 1 });
  const decisions = Object.keys(await readMetric(gateway, 'tollgate_quota_decisions_total'));
  expect(decisions.filter((labels) => labels.includes('plan="basic"'))).toHaveLength(1);
  const explained = (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body;
  expect(explained).toMatchObject({ plan: 'starter', current_plan: 'basic', limit: 40, limit_source: 'plan' });
  const shown = await tollgateHereFor(gateway)('customers', 'show', 'acme');
  expect(shown.stdout).toMatch(/^plan +starter\ncurrent_plan +basic$/m);
  expect(explained.origin).toMatch(/gateway\.yaml:\d+$/);
  expect((await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'new', plan: 'starter' } })).status).toBe(422);

  await rewrite(gateway, { plans: { basic: { requests_per_hour: 40 }, gold: PLANS.gold } });
  expect(await takeOver(gateway)).toBe('plan_in_use');
});

test('a plan that nobody holds can be dropped, and a new one given to a customer at once', async () => {
  const { gateway } = await start();
  await rewrite(gateway, { plans: { starter: PLANS.starter, silver: { requests_per_hour: 9 } } });
  expect(await takeOver(gateway)).toBe('applied');
  const key = await createCustomerWithKey(gateway, { id: 'second', plan: 'silver' });
  expect(limitOf(await fetch(gateway.public + PATH, { headers: bearer(key) }))).toBe('9');
});

test('what else may change while the gateway runs holds from the next request on', async () => {
  const system = await start();
  const { gateway } = system;
  await rewrite(gateway, {
    overrides: { acme: { requests_per_hour: 77 } },
    routes: [{ path: '/api/v1/other', methods: ['GET'] }],
    aliases: { '/o': '/api/v1' },
    usage_path: '/api/v1/mine',
    auth: { realm: 'another', cache_seconds: 1, failures_per_minute: 1, browser_keys: 'reject' },
    identity: { headers: false },
    upstream: { ...(gateway.sections.upstream as object), credentials: 'forward' },
    logging: { level: 'debug', access: 'all' },
  });
  expect(await takeOver(gateway)).toBe('applied');
  expect((await read(system)).status).toBe(404);
  const answer = await read(system, '/o/other');
  expect(answer.status).toBe(200);
  expect(limitOf(answer)).toBe('77');
  const headers = system.backend.seen.at(-1)?.headers;
  expect(headers?.authorization).toBe(`Bearer ${system.key}`);
  expect(headers).not.toHaveProperty('x-tollgate-customer');
  expect((await read(system, '/api/v1/mine')).status).toBe(200);
  const anonymous = await fetch(`${gateway.public}/api/v1/other`);
  expect(anonymous.headers.get('www-authenticate')).toBe('Bearer realm="another"');
  const fromBrowser = { ...bearer(system.key), origin: 'https://a.example' };
  expect((await fetch(`${gateway.public}/api/v1/other`, { headers: fromBrowser })).status).toBe(403);
  const guess = () => fetch(`${gateway.public}/api/v1/other`, { headers: bearer('wrong-key') });
  expect([(await guess()).status, (await guess()).status]).toEqual([401, 429]);
  expect(messages(gateway)).toContain('request');
});

test('the admin API reloads on demand, says what changed, and writes it down', async () => {
  const { gateway } = await start();
  const path = '/admin/v1/config/reload';
  expect(await callAdmin(gateway, path, { method: 'POST' })).toMatchObject({
    status: 200,
    body: { result: 'unchanged' },
  });
  await rewrite(gateway, { plans: { ...PLANS, gold: { requests_per_hour: 60 } } });
  const { status, body } = await callAdmin(gateway, path, { method: 'POST' });
  expect(status).toBe(200);
  // The watch may have been there before.
  expect(['applied', 'unchanged']).toContain(body.result);
  await writeFile(gateway.file, 'nonsense: 1');
  const refused = await callAdmin(gateway, path, { method: 'POST' });
  expect(refused).toMatchObject({ status: 422, body: { code: 'unprocessable' } });
  expect(refused.body.detail).toContain('nonsense: unknown key');
});

test('a secret in a file of its own is read again, and a token that was replaced does not open any more', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-token-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'token');
  await writeFile(file, 'first-token\n');
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const admin = { token: undefined, token_file: file };
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9', config: { admin } });
  onTestFinished(() => gateway.close());
  const statusWith = async (token: string) =>
    (await fetch(`${gateway.admin}/status`, { headers: bearer(token) })).status;
  expect(await statusWith('first-token')).toBe(200);
  await writeFile(file, 'second-token\n');
  const outcome = await gateway.reload('signal');
  expect(outcome.changes.map(({ key }) => key)).toEqual(['admin.token']);
  expect([await statusWith('second-token'), await statusWith('first-token')]).toEqual([200, 401]);
  expect(JSON.stringify(gateway.logs)).not.toContain('second-token');
});

test('a file that is the running one, truncated within a line, is refused', async () => {
  const system = await start();
  const { gateway } = system;
  const running = await readFile(gateway.file, 'utf8');
  const end = running.indexOf('requests_per_hour: 100') + 'requests_per_hour: 1'.length;
  await writeFile(gateway.file, running.slice(0, end));
  const outcome = await gateway.reload('signal');
  expect(outcome.result).toBe('invalid');
  expect(outcome.problems.join()).toMatch(/truncated within this line/);
  expect(limitOf(await read(system))).toBe('100');
});
