/** Each command against a running gateway; as a process where that makes a difference. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { failsChecksum } from '../../src/formats/api-key.ts';
import { parseWebhookSecret } from '../../src/formats/webhook-signature.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import {
  ADMIN_TOKEN,
  EMBEDDED_STORE,
  STORES,
  type StoreKind,
  startTestGateway,
  type TestGateway,
  type TestStore,
} from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { writeCustomer } from '../support/redis-system.ts';
import { run, shellWords, temporaryFile, tollgateFor, tollgateHereFor } from './support.ts';

const SOON = '2100-01-01T00:00:00Z';

const PLANS = {
  starter: { requests_per_hour: 1000 },
  enterprise: { requests_per_hour: 'custom' },
  monthly: { requests_per_hour: 1000, period: { per: 'month', requests: 50_000, beyond: 'allow' } },
};

let store: TestStore;
let backend: Backend;
let gateway: TestGateway;
let tollgate: ReturnType<typeof tollgateHereFor>;

async function startOver(kind: StoreKind) {
  store = await kind.start();
  backend = await startBackend((_req, res) => res.end('{}'));
  gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url, config: { plans: PLANS } });
  tollgate = tollgateHereFor(gateway);
}

async function stop() {
  await gateway.close();
  await backend.close();
  await store.close();
}

/** Starts a gateway for each test of a block. */
function startForEach(kind: StoreKind) {
  beforeEach(() => startOver(kind));
  afterEach(stop);
}

/** Starts a gateway for all tests of a block, which leave it as it was. */
function startForAll(kind: StoreKind) {
  beforeAll(() => startOver(kind));
  afterAll(stop);
}

/** Standard output of a command that must succeed. */
async function succeed(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await tollgate(...args);
  expect({ args, status, stderr: status === 0 ? '' : stderr }).toEqual({ args, status: 0, stderr: '' });
  return stdout;
}

async function succeedAsJson(...args: string[]) {
  return JSON.parse(await succeed(...args, '--json'));
}

const answerTo = async (key: string) =>
  (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;

describe.each(STORES)('over $name', (kind) => {
  startForEach(kind);

  it("sets a customer's URL for notices, and prints its secret alone on standard output", async () => {
    const url = 'https://hooks.example/tollgate';
    const create = ['customers', 'create', 'acme', '--plan', 'starter', '--notify-url', url];
    expect(await succeedAsJson(...create)).toMatchObject({ notify_url: url });
    expect(await succeedAsJson('customers', 'update', 'acme', '--no-notify-url')).toMatchObject({ notify_url: null });
    expect(await succeed('customers', 'update', 'acme', '--notify-url', url)).toContain(url);
    const first = await tollgate('customers', 'notify-secret', 'acme');
    expect([first.status, parseWebhookSecret(first.stdout.trim())?.length]).toEqual([0, 32]);
    const second = await tollgate('customers', 'notify-secret', 'acme');
    expect(second.stderr).toMatch(/signed with the former secret, too, until /);
    expect(second.stdout).not.toBe(first.stdout);
    expect(await succeedAsJson('customers', 'notify-secret', 'acme')).toMatchObject({
      secret: expect.stringMatching(/^whsec_/),
      former_valid_until: expect.stringMatching(/Z$/),
    });
    const refused = await tollgate('customers', 'update', 'acme', '--notify-url', 'http://hooks.example/');
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('notify_url: must be https://') });
  });

  it('leads a customer through its life', async () => {
    const created = await succeed('customers', 'create', 'acme', '--plan', 'enterprise', '--requests-per-hour', '3');
    expect(created).toMatch(/^id +acme$/m);
    expect(created).toMatch(/^limit +3$/m);

    expect(await succeedAsJson('customers', 'update', 'acme', '--name', 'Acme', '--suspended')).toMatchObject({
      name: 'Acme',
      suspended: true,
      requests_per_hour: 3,
    });
    expect(
      await succeedAsJson('customers', 'update', 'acme', '--plan', 'starter', '--no-requests-per-hour', '--no-name'),
    ).toMatchObject({ name: null, plan: 'starter', requests_per_hour: null, limit: 1000, suspended: true });
    await succeed('customers', 'update', 'acme', '--no-suspended');
    expect(await succeedAsJson('customers', 'show', 'acme')).toEqual(
      (await callAdmin(gateway, '/admin/v1/customers/acme')).body,
    );

    expect(await succeedAsJson('explain', 'acme')).toMatchObject({ limit: 1000, limit_source: 'plan' });
    expect(await succeed('explain', 'acme')).toMatch(
      /^Its requests are refused now: it has no valid key\.\n[\s\S]*^limit +1000$/m,
    );

    const key = (await succeed('keys', 'create', 'acme')).trim();
    expect(await answerTo(key)).toBe(200);
    expect(await succeedAsJson('usage', 'show', 'acme')).toMatchObject({ limit: 1000, remaining: 999 });
    await succeed('usage', 'reset', 'acme', '--yes');
    expect(await succeed('usage', 'show', 'acme')).toMatch(/^used +0$/m);

    await succeed('customers', 'delete', 'acme', '--yes');
    await expect.poll(() => answerTo(key)).toBe(401);
    const { status, stderr } = await tollgate('customers', 'show', 'acme');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^tollgate: .*\(not_found\)\n$/);
  });

  it('sets and removes the limit of a period, and when periods begin', async () => {
    const created = await succeedAsJson(
      ...['customers', 'create', 'acme', '--plan', 'monthly'],
      ...['--period-requests', '70000', '--period-anchor', '2026-01-31T12:00:00+02:00'],
    );
    expect(created).toMatchObject({ period_requests: 70_000, period_anchor: '2026-01-31T10:00:00.000Z' });
    expect(await succeed('customers', 'show', 'acme')).toMatch(
      /^period +70000 per month \(customer\), more is overage$/m,
    );
    const update = (...options: string[]) => succeedAsJson('customers', 'update', 'acme', ...options);
    const day = { period_anchor: '2026-01-15T00:00:00.000Z', period_requests: 70_000 };
    expect(await update('--period-anchor', '2026-01-15')).toMatchObject(day);
    expect(await update('--no-period-requests', '--no-period-anchor')).toMatchObject({
      ...{ period_requests: null, period_anchor: null },
      period: { limit: 50_000, limit_source: 'plan' },
    });
    for (const anchor of ['7d', '2026-01-15T10:30:00Z', '31']) {
      const { status, stderr } = await tollgate('customers', 'update', 'acme', '--period-anchor', anchor);
      expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('a whole hour of UTC') });
    }
  });

  it('sets a limit and a suspension for a time, and shows when each ends and what applies then', async () => {
    await succeed('customers', 'create', 'acme', '--plan', 'starter');
    const update = (...options: string[]) => succeed('customers', 'update', 'acme', ...options);
    const inAWeek = Date.now() + 7 * 24 * 3_600_000;
    const { temporary_limit: given } = await succeedAsJson(
      ...['customers', 'update', 'acme', '--temporary-limit', '2000', '--until', '7d'],
    );
    expect(given.requests_per_hour).toBe(2000);
    expect(Math.abs(Date.parse(given.until) - inAWeek)).toBeLessThan(60_000);
    const until = given.until.replace(/\.\d+/, '');
    expect(await succeed('customers', 'show', 'acme')).toMatch(
      new RegExp(`^limit +2000 until ${until}, then 1000$`, 'm'),
    );
    expect(await succeed('explain', 'acme')).toMatch(new RegExp(`^limit +2000 until ${until}, then 1000$`, 'm'));
    expect(await succeed('customers', 'list')).toMatch(
      new RegExp(`^acme +starter +2000 until ${until}, then 1000 +temporary`, 'm'),
    );
    expect(await update('--no-temporary-limit')).toMatch(/^limit +1000$/m);
    const created = await succeedAsJson(
      ...['customers', 'create', 'globex', '--plan', 'starter', '--temporary-limit', '9', '--suspended'],
      ...['--until', '2100-01-01'],
    );
    const fromStart = { requests_per_hour: 9, until: '2100-01-01T00:00:00.000Z' };
    expect(created).toMatchObject({ temporary_limit: fromStart, suspended: true, suspended_until: fromStart.until });

    expect(await update('--suspended', '--until', '2100-01-01')).toMatch(/^suspended +until 2100-01-01T00:00:00Z$/m);
    expect(await update('--suspended')).toMatch(/^suspended +true$/m);
    const both = await succeedAsJson(
      ...['customers', 'update', 'acme', '--temporary-limit', '5', '--suspended', '--until', '2100-01-01'],
    );
    const end = '2100-01-01T00:00:00.000Z';
    expect(both).toMatchObject({ suspended_until: end, temporary_limit: { requests_per_hour: 5, until: end } });
    // Of the customer that has both, neither can be meant alone.
    for (const options of [
      ['--until', '7d'],
      ['--no-suspended', '--until', '7d'],
    ]) {
      expect(await tollgate('customers', 'update', 'acme', ...options)).toMatchObject({ status: 2, stdout: '' });
    }
    for (const options of [
      ['--temporary-limit', '5'],
      ['--until', '7d'],
    ]) {
      const refused = await tollgate('customers', 'create', 'new', '--plan', 'starter', ...options);
      expect(refused).toMatchObject({ status: 2, stdout: '' });
    }
  });

  it('prolongs the limit or the suspension that ends by --until alone, and keeps the end with another limit', async () => {
    await succeed('customers', 'create', 'acme', '--plan', 'starter');
    const update = (...options: string[]) => succeedAsJson('customers', 'update', 'acme', ...options);
    const [until, later] = ['2100-01-01T00:00:00.000Z', '2100-02-01T00:00:00.000Z'];
    for (const options of [
      ['--until', later],
      ['--temporary-limit', '5'],
    ]) {
      expect(await tollgate('customers', 'update', 'acme', ...options)).toMatchObject({ status: 2, stdout: '' });
    }
    await update('--temporary-limit', '2000', '--until', until);
    const prolonged = { temporary_limit: { requests_per_hour: 2000, until: later }, suspended: false };
    expect(await update('--until', later)).toMatchObject(prolonged);
    const lowered = { temporary_limit: { requests_per_hour: 1500, until: later } };
    expect(await update('--temporary-limit', '1500')).toMatchObject(lowered);
    // A suspension without an end is not prolonged.
    await update('--suspended');
    expect(await update('--until', until)).toMatchObject({ suspended: true, suspended_until: null });
    await update('--no-temporary-limit');
    expect(await tollgate('customers', 'update', 'acme', '--until', later)).toMatchObject({ status: 2, stdout: '' });
    await update('--suspended', '--until', until);
    expect(await update('--until', later)).toMatchObject({ suspended_until: later, temporary_limit: null });
  });

  it('leads a key through its life', async () => {
    await succeed('customers', 'create', 'acme', '--plan', 'starter');
    const created = await tollgate('keys', 'create', 'acme', '--name', 'ci', '--expires-at', SOON);
    const key = created.stdout.trim();
    expect(key).toMatch(/^tg_[0-9A-Za-z]{49}$/);
    expect(failsChecksum(key)).toBe(false);
    expect(created.stderr).toContain('shown only once');
    expect(created.stderr).not.toContain(key);
    const id = /^Key (\S+) of customer acme/.exec(created.stderr)?.[1] ?? '';
    expect(await answerTo(key)).toBe(200);

    expect(await succeed('keys', 'show', id)).toMatch(/^state +live\n(?:.*\n)*expires_at +2100-01-01T00:00:00.000Z$/m);
    expect(await succeedAsJson('keys', 'update', id, '--name', 'build', '--no-expires-at')).toMatchObject({
      name: 'build',
      expires_at: null,
    });

    const restricted = [
      '--scope',
      'read',
      '--scope=write',
      '--allowed-address',
      '10.0.0.0/8',
      '--allowed-address',
      '::1',
    ];
    const restrictions = { scopes: ['read', 'write'], allowed_addresses: ['10.0.0.0/8', '::1'] };
    expect(await succeedAsJson('keys', 'create', 'acme', ...restricted)).toMatchObject(restrictions);
    expect(await succeedAsJson('keys', 'update', id, ...restricted)).toMatchObject(restrictions);
    expect(await succeed('keys', 'show', id)).toMatch(
      /^scopes +\["read","write"\]\nallowed_addresses +\["10.0.0.0\/8","::1"\]$/m,
    );
    expect(await succeedAsJson('keys', 'update', id, '--no-scope', '--no-allowed-address')).toMatchObject({
      scopes: null,
      allowed_addresses: null,
    });

    expect((await tollgate('keys', 'usage', id)).stderr).toContain('The key has no limit of its own.');
    const limit = ['--requests-per-hour', '70'];
    expect(await succeedAsJson('keys', 'create', 'acme', ...limit)).toMatchObject({ requests_per_hour: 70 });
    expect(await succeedAsJson('keys', 'update', id, ...limit)).toMatchObject({ requests_per_hour: 70 });
    expect(await succeed('keys', 'usage', id)).toMatch(/^limit +70\nused +0\nremaining +70\nreset_seconds +0\n/);
    expect(await succeed('keys', 'reset-usage', id, '--yes')).toBe(`The usage of key ${id} is reset.\n`);
    const unlimited = await succeedAsJson('keys', 'update', id, '--no-requests-per-hour');
    expect(unlimited).toMatchObject({ requests_per_hour: null, used: null });

    const rotated = await tollgate('keys', 'rotate', id, '--grace-seconds', '3600', '--json');
    const successor = JSON.parse(rotated.stdout);
    expect(successor).toMatchObject({ customer: 'acme', name: 'build', replaces: id });
    expect(rotated.stderr).toContain(`replaces ${id}`);
    expect([await answerTo(key), await answerTo(successor.key)]).toEqual([200, 200]);
    expect(await succeed('keys', 'show', id)).toMatch(/^state +rotated until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m);

    const table = await succeed('keys', 'list', 'acme');
    expect(table).toMatch(/^KEY +CUSTOMER +STATE +PREFIX +CREATED +EXPIRES +LAST USED +LIMIT +USED +NAME\n/);
    expect(table).toMatch(new RegExp(`^${id} +acme +rotated `, 'm'));
    expect(table).toMatch(new RegExp(`^${successor.id} +acme +live `, 'm'));

    await succeed('keys', 'revoke', id, '--yes');
    await expect.poll(() => answerTo(key)).toBe(401);
    expect(await answerTo(successor.key)).toBe(200);
    expect(await succeed('keys', 'list')).toMatch(new RegExp(`^${id} +acme +revoked `, 'm'));

    const unused = await succeedAsJson('keys', 'unused', '--days', '1');
    expect(unused).toEqual({ items: [], next_cursor: null });

    const leaked = await tollgate('keys', 'rotate', successor.id, '--grace', '0');
    await expect.poll(() => answerTo(successor.key)).toBe(401);
    expect(await answerTo(leaked.stdout.trim())).toBe(200);
  });

  it('lists actors and changes, newest first', async () => {
    await succeed('customers', 'create', 'acme', '--plan', 'starter');
    await succeed('customers', 'update', 'acme', '--suspended');
    const lines = (await succeed('audit')).trimEnd().split('\n');
    expect(lines[0]).toMatch(/^AT +WHO +FROM +ACTION +CUSTOMER +KEY +DETAILS$/);
    expect(lines[1]).toMatch(/ token +127\.0\.0\.1 +customer\.update +acme +suspended=false → true$/);
    expect(lines[2]).toMatch(/ customer\.create +acme +plan="starter"$/);
    expect((await succeedAsJson('audit', '--limit', '1')).items).toMatchObject([{ action: 'customer.update' }]);
  });

  it('prints what an import added as one line of the audit, and each entry as JSON', async () => {
    await succeed('customers', 'create', 'acme', '--plan', 'starter');
    for (let i = 0; i < 4; i++) {
      await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { value: `imported-key-${i}` } });
    }
    const lines = (await succeed('audit')).trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toMatch(/ token +127\.0\.0\.1 +4 × key\.import +acme +since \d{4}-\S+Z$/);
    expect(lines[2]).toMatch(/ customer\.create +acme +plan="starter"$/);
    expect((await succeedAsJson('audit')).items).toHaveLength(5);
    expect((await succeed('audit', '--jsonl')).trimEnd().split('\n')).toHaveLength(5);
  });
});

it('lists everything, however many pages it takes', async () => {
  const ids = Array.from({ length: 1100 }, (_, index) => `customer-${String(index).padStart(4, '0')}`);
  await startOver({
    name: 'Redis with customers',
    async start() {
      const redis = await startRedis();
      await Promise.all(ids.map((id) => writeCustomer(redis, id, { plan: 'starter' })));
      return { url: redis.url, close: () => redis.stop() };
    },
  });
  onTestFinished(stop);
  const { items } = await succeedAsJson('customers', 'list');
  expect(items.map(({ id }: { id: string }) => id)).toEqual(ids);
  expect((await succeed('customers', 'list')).split('\n')).toHaveLength(1100 + 2);
});

describe('what cannot be done', () => {
  startForAll(EMBEDDED_STORE);

  it.each([
    ['customers delete without --yes and a terminal', ['customers', 'delete', 'acme'], /--yes/],
    ['keys revoke without --yes and a terminal', ['keys', 'revoke', 'key_some'], /--yes/],
    ['usage reset without --yes and a terminal', ['usage', 'reset', 'acme'], /--yes/],
    ['an update that names nothing', ['customers', 'update', 'acme'], /nothing to change/],
    ['an update of a key that names nothing', ['keys', 'update', 'key_some'], /nothing to change/],
    ['a customer id that leads elsewhere', ['keys', 'list', '..'], /customer id/],
    ['a key id that leads elsewhere', ['keys', 'revoke', '..', '--yes'], /cannot be the id of a key/],
    ['an empty key id', ['keys', 'show', ''], /cannot be the id of a key/],
    ['a limit of 0', ['customers', 'create', 'acme', '--plan', 'starter', '--requests-per-hour', '0'], /from 1 to/],
    ['a limit that is no integer', ['customers', 'update', 'acme', '--requests-per-hour', '1e3'], /from 1 to/],
    ['a grace of more than a year', ['keys', 'rotate', 'key_some', '--grace-seconds', '31536001'], /from 0 to/],
    ['no plan', ['customers', 'create', 'acme'], /--plan/],
    ['no days', ['keys', 'unused'], /--days/],
  ])('%s: status 2, and the gateway gets no request', async (_what, args, message) => {
    const { status, stdout, stderr } = await tollgate(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^ {4}at /m);
    expect((await callAdmin(gateway, '/admin/v1/audit')).body.items).toEqual([]);
  });

  it('says so when there is nothing to list, and prints no table', async () => {
    expect(await tollgate('customers', 'list')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'There are no customers.\n',
    });
    expect(await succeedAsJson('customers', 'list')).toEqual({ items: [], next_cursor: null });
  });

  it('a list filtered by a plan that neither the configuration nor a customer has is an error that lists the plans', async () => {
    expect(await tollgate('customers', 'list', '--plan', 'gold')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^tollgate: plan gold is not configured; the configured plans are starter, .+\n$/),
    });
    expect((await tollgate('customers', 'list', '--plan', 'starter')).stderr).toBe('There are no such customers.\n');
  });

  it('shows periods that are over as a table, as JSON, or as lines of a format, whose cursor needs the format', async () => {
    expect((await tollgate('usage', 'periods', '--ended-after', '40d')).stderr).toBe(
      'There are no periods that are over.\n',
    );
    expect(await succeedAsJson('usage', 'periods')).toEqual({ items: [], next_cursor: null });
    const header = 'id,customer,plan,starts_at,ends_at,included,used,overage\n';
    expect(await succeed('usage', 'periods', '--format', 'csv')).toBe(header);
    expect(await tollgate('usage', 'periods', '--cursor', '1~~')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--cursor needs --format'),
    });
  });

  it('says how fresh the list of customers near their limits is', async () => {
    expect((await tollgate('usage', 'near')).stderr).toMatch(
      /^There are no customers near their limits\.\nAs of \d{4}-\S+Z\. A customer is listed at most 10 seconds after /,
    );
  });

  // Last, because they create a customer.
  it.each([
    [
      'a customer that exists',
      ['customers', 'create', 'acme', '--plan', 'starter'],
      /A customer with this id exists .*\(conflict\)$/,
    ],
    [
      'an unknown plan',
      ['customers', 'create', 'other', '--plan', 'gold'],
      /plan: must be one of the configured plans: starter, .*\(unprocessable\)$/,
    ],
    [
      'a change of a customer that does not exist',
      ['customers', 'update', 'acmee', '--suspended'],
      /There is no customer acmee\. \(not_found\)$/,
    ],
    [
      'a key of a customer that does not exist',
      ['keys', 'create', 'acmee'],
      /There is no customer acmee\. \(not_found\)$/,
    ],
    [
      'an expiry in the past',
      ['keys', 'create', 'acme', '--expires-at', '2020-01-01T00:00:00Z'],
      /expires_at: .*\(unprocessable\)$/,
    ],
    ['an unknown key', ['keys', 'rotate', 'key_nobody'], /\(not_found\)$/],
    ['a key id of other characters', ['keys', 'show', 'a/b?c#d%2e'], /\(not_found\)$/],
  ])('%s: status 1, and the words of the admin API in one line', async (_what, args, message) => {
    await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'acme', plan: 'starter' } });
    const { status, stdout, stderr } = await tollgate(...args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^tollgate: [^\n]+\n$/);
    expect(stderr.trimEnd()).toMatch(message);
  });
});

it('ends silently when the reader of its output has exited, with the status of a program killed by SIGPIPE', async () => {
  await startOver(EMBEDDED_STORE);
  onTestFinished(stop);
  const command = shellWords(gateway, ['customers', 'list', '--json']);
  const env = { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const { stdout, stderr } = await run('bash', ['--norc', '-c', `(${command}; echo "$?" >&2) | true`], { env });
  expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '141\n' });
});

describe('the admin token', () => {
  startForAll(EMBEDDED_STORE);

  it('is required: without one, status 2', async () => {
    const { status, stderr } = await tollgateFor(gateway)(['audit'], { env: { TOLLGATE_ADMIN_TOKEN: '' } });
    expect(status).toBe(2);
    expect(stderr).toMatch(/TOLLGATE_ADMIN_TOKEN.*--admin-token-file/);
  });

  it('that is refused is never printed, but its source is', async () => {
    const { status, stderr } = await tollgateHereFor(gateway, 'marked-wrong-token')('audit');
    expect(status).toBe(1);
    expect(stderr).toContain('(unauthorized)');
    expect(stderr).toContain('was taken from TOLLGATE_ADMIN_TOKEN');
    expect(stderr).not.toContain('marked-wrong-token');
  });

  it('that no header can carry is not repeated either', async () => {
    const { status, stderr } = await tollgateHereFor(gateway, 'marked\ntoken')('audit');
    expect(status).toBe(1);
    expect(stderr).toContain('TOLLGATE_ADMIN_TOKEN cannot be sent');
    expect(stderr).not.toContain('marked');
  });

  it('may stand in a file, which goes before the variable', async () => {
    const file = await temporaryFile('token', `${ADMIN_TOKEN}\n`);
    const tollgate = tollgateHereFor(gateway, 'another');
    expect((await tollgate('audit', '--admin-token-file', file)).status).toBe(0);
    const missing = await tollgate('audit', '--admin-token-file', `${file}.missing`);
    expect(missing.status).toBe(1);
    expect(missing.stderr).toBe(`tollgate: ${file}.missing: the admin token cannot be read: there is no such file\n`);
  });
});
