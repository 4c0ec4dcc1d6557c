import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { CUSTOMER_FILE } from '../../src/cli/customers-file.ts';
import { readImportFile } from '../../src/cli/import-file.ts';
import { createApiKey } from '../../src/formats/api-key.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, sign, startIssuer } from '../control/admin/issuer.ts';
import { callAdmin } from '../support/admin.ts';
import { closeAtEnd, startShared } from '../support/cleanup.ts';
import { REDIS_STORE, startTestGateway } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';
import {
  CUSTOMER_DOCUMENT,
  problemDocument,
  startServer,
  temporaryFile,
  tollgateFor,
  tollgateHereFor,
} from './support.ts';

const CONFIG = {
  plans: {
    starter: { requests_per_hour: 1000, formerly: ['beginner'] },
    business: { requests_per_hour: 20_000 },
    enterprise: { requests_per_hour: 'custom' },
    metered: { requests_per_hour: 1000, period: { per: 'month', requests: 'custom' } },
    12: { requests_per_hour: 12 },
  },
  overrides: { vip: { requests_per_hour: 7 } },
};
const system = startShared(async () => {
  const store = await REDIS_STORE.start();
  closeAtEnd(() => store.close());
  const redis = new Redis(store.url);
  closeAtEnd(() => redis.disconnect());
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9', config: CONFIG });
  closeAtEnd(() => gateway.close());
  /** Writes a record as another program may. */
  const write = (id: string, record: object) => redis.hset(`tollgate:customer:{${id}}`, record);
  return { gateway, write };
});

const admin = async (path: string, init: { method?: string; body?: unknown } = {}) =>
  (await callAdmin(system().gateway, `/admin/v1/${path}`, init)).body;
interface Customer {
  readonly id: string;
  readonly plan: string;
}
const customersOf = async (): Promise<Customer[]> =>
  (await admin('customers')).items.toSorted((a: Customer, b: Customer) => (a.id < b.id ? -1 : 1));
const idsOf = async () => (await customersOf()).map(({ id }) => id);
const create = (body: object) => admin('customers', { body });

beforeEach(async () => {
  for (const id of await idsOf()) await admin(`customers/${id}`, { method: 'DELETE' });
});

const tollgate = (...args: string[]) => tollgateHereFor(system().gateway)(...args);

async function apply(text: string | Uint8Array, ...options: string[]) {
  const file = await temporaryFile('customers.yaml', text);
  const { stderr, ...finished } = await tollgate('customers', 'apply', '-f', file, ...options);
  return { ...finished, stderr: stderr.replaceAll(file, 'FILE') };
}

async function applied(text: string | Uint8Array, ...options: string[]) {
  const finished = await apply(text, ...options);
  expect(finished).toMatchObject({ status: 0 });
  return finished;
}

const KEY = createApiKey();

const YAML = `customers:
  - id: acme
    plan: starter
    name: Acme, Inc.
  - id: 12345 # an id of digits
    plan: 12
    requests_per_hour: 5
`;

it('the example of docs/cli.md has no faults', () => {
  const page = readFileSync(new URL('../../docs/cli.md', import.meta.url));
  const [, example = ''] = /```yaml\n(customers:.*?)```/s.exec(page.toString()) ?? [];
  expect(readImportFile(Buffer.from(example), CUSTOMER_FILE)).toMatchObject({ items: [{}, {}], faults: [] });
});

it('creates, changes and leaves alone, shows each change with its former value, and audits it', async () => {
  await create({ id: 'acme', plan: 'business', requests_per_hour: 9 });
  const { stdout, stderr } = await applied(YAML);
  expect(stdout).toMatch(/^LINE +OUTCOME +CUSTOMER +CHANGES$/m);
  expect(stdout).toMatch(/^ +2 +changed +acme +plan="business" → "starter" name="Acme, Inc\."$/m);
  expect(stdout).toMatch(/^ +5 +created +12345 +plan="12" requests_per_hour=5$/m);
  expect(stderr).toBe('Customers: 1 changed, 1 created.\n');
  expect(await customersOf()).toMatchObject([
    { id: '12345', plan: '12', requests_per_hour: 5 },
    { id: 'acme', plan: 'starter', name: 'Acme, Inc.', requests_per_hour: 9 },
  ]);
  const { items } = await admin('audit?customer=acme&limit=1');
  expect(items).toMatchObject([{ action: 'customer.update', before: { plan: 'business', name: null } }]);

  const again = await applied(YAML);
  expect(again).toMatchObject({ stdout: '', stderr: expect.stringContaining('Customers: 2 unchanged.') });
  expect((await admin('audit?customer=acme&limit=1')).items).toEqual(items);
});

it('null unsets a member, and an absent one is left alone', async () => {
  const set = {
    name: 'Acme',
    requests_per_hour: 9,
    period_requests: 8,
    period_anchor: '2026-01-31T10:00:00.000Z',
    temporary_limit: { requests_per_hour: 7, until: '2100-01-01T00:00:00.000Z' },
    notify_url: 'https://hooks.example/acme',
  };
  const suspension = { suspended: true, suspended_until: '2100-01-01T00:00:00.000Z' };
  await create({ id: 'acme', plan: 'starter', ...set, ...suspension });
  expect((await applied('customers: [{ id: acme }]')).stdout).toBe('');
  expect(await customersOf()).toMatchObject([{ ...set, ...suspension }]);

  const endless = await applied('customers: [{ id: acme, suspended_until: null }]', '--json');
  expect(JSON.parse(endless.stdout).items).toMatchObject([
    { line: 1, outcome: 'changed', changes: { suspended_until: { before: suspension.suspended_until, after: null } } },
  ]);
  expect(await customersOf()).toMatchObject([{ suspended: true, suspended_until: null }]);
  const unset = Object.fromEntries([...Object.keys(set), 'suspended'].map((name) => [name, null]));
  await applied(`${JSON.stringify({ id: 'acme', ...unset })}\n`);
  expect(await customersOf()).toMatchObject([{ ...unset, plan: 'starter', suspended: false, suspended_until: null }]);
});

it.each([
  ['suspended: true', { suspended: true, suspended_until: '2100-01-01T00:00:00.000Z' }, {}],
  [
    'suspended_until: 2100-02-01',
    { suspended: false },
    { suspended: true, suspended_until: '2100-02-01T00:00:00.000Z' },
  ],
  ['suspended: true', { suspended: false }, { suspended: true, suspended_until: null }],
  ['suspended: false', { suspended_until: '2100-01-01T00:00:00.000Z' }, { suspended: false, suspended_until: null }],
])('a suspension %s, on %j', async (member, before, after) => {
  await create({ id: 'acme', plan: 'starter', ...before });
  await applied(`customers:\n- id: acme\n  ${member}\n`);
  expect(await customersOf()).toMatchObject([{ ...before, ...after }]);
});

it('an export, applied, changes nothing, and makes the same customers where there are none', async () => {
  const until = '2100-01-01T00:00:00.000Z';
  await create({
    id: 'acme',
    plan: 'metered',
    name: '12: "a" \u2028\u202e #b',
    requests_per_hour: 5,
    period_requests: 6,
    period_anchor: '2026-01-31T10:00:00Z',
    temporary_limit: { requests_per_hour: 7, until },
    suspended_until: until,
    notify_url: 'https://hooks.example/acme?a=1',
  });
  await create({ id: '0x10', plan: 'starter', name: 'null' });
  await create({ id: 'vip', plan: 'enterprise', suspended: true });
  const before = await customersOf();
  for (const option of [[], ['--jsonl']]) {
    const { status, stdout, stderr } = await tollgate('customers', 'export', ...option);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).not.toMatch(/[\u2028\u202e]/);
    expect((await applied(stdout, '--prune')).stdout).toBe('');
    for (const { id } of before) await admin(`customers/${id}`, { method: 'DELETE' });
    await applied(stdout);
    expect(await customersOf()).toEqual(before);
  }
});

it('exports what other programs wrote so that it can be applied, and names what it leaves out', async () => {
  await system().write('a', { plan: 'beginner', name: 'n'.repeat(201) });
  await system().write('b', { plan: 'gone', requests_per_hour: 'many', notify_url: 'http://hooks.example' });
  const before = await customersOf();
  const { status, stdout, stderr } = await tollgate('customers', 'export');
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: 'customers:\n  - id: "a"\n    plan: "starter"\n  - id: "b"\n    plan: "gone"\n',
  });
  expect(stderr).toMatch(
    /^warning: customer a: left out: name: must have at most 200 characters\n.* b: left out: notify_url: /,
  );
  expect(await applied(stdout)).toMatchObject({ stdout: '', stderr: expect.stringContaining('2 unchanged') });
  expect(await customersOf()).toEqual(before);
});

describe('faults', () => {
  it('are all named with their lines, no value is repeated, and nothing is written', async () => {
    await create({ id: 'known', plan: 'starter' });
    const { status, stdout, stderr } = await apply(`version: 1
customers:
  - id: good
    plan: starter
  - id: good
    plan: 1e1
    name: 7
    tier: gold
    ${KEY}: 1
  - plan: starter
  - id: new
    requests_per_hour: "5"
  - id: known
    plan: null
    plan: beginner
    __proto__: { id: other }
    temporary_limit: { requests_per_hour: 0, until: tomorrow, reason: none }
  - id: custom
    plan: enterprise
    suspended: yes
  - { id: vip, plan: enterprise, suspended: false, suspended_until: 2100-01-01 }
  - known
  - id: known2
    plan: starter
    name: ${KEY}
`);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    const plans = '12, starter, business, enterprise, metered';
    expect(stderr.trimEnd().split('\n')).toEqual([
      'FILE:1: "version": unknown member',
      'FILE:5: it has the same id as line 3',
      `FILE:6: plan: must be one of the configured plans: ${plans}`,
      'FILE:8: "tier": unknown member',
      'FILE:9: a name that is not shown: unknown member',
      'FILE:10: id: missing',
      'FILE:11: plan: missing, and there is no customer with this id',
      'FILE:12: requests_per_hour: must be a number',
      'FILE:14: plan: must be a string',
      'FILE:15: "plan": is given twice, first on line 14; keep one',
      'FILE:16: "__proto__": is a name that cannot be used; choose another',
      'FILE:17: temporary_limit.requests_per_hour: must be at least 1',
      'FILE:17: temporary_limit.until: must be an ISO 8601 time in UTC, such as 2030-01-31T00:00:00Z',
      'FILE:17: "reason": unknown member',
      'FILE:19: requests_per_hour: missing, and the plan is custom',
      'FILE:20: suspended: must be a boolean',
      'FILE:21: suspended_until: must not be given with suspended: false',
      'FILE:22: it is no customer: an id and other members',
      'FILE:25: name: must not contain an API key',
      'Nothing was changed.',
    ]);
    expect(stderr).not.toContain(KEY);
    expect(await idsOf()).toEqual(['known']);
  });

  it.each([
    ['{"id":"a","plan":"starter"}\n{"id":"a","plan":"starter"', 2, 'it is not one complete JSON object'],
    ['\ufeff{"id":"a","plan":"starter"}\r\n\r\n{"id":"b","id":"c","plan":"starter"}\r\n', 3, 'it has a member twice'],
    ['{"id":"a","plan":"starter","temporary_limit":{"until":1,"until":2}}', 1, 'it has a member twice'],
    ['{"id":"a","plan":"starter","__proto__":{}}', 1, '"__proto__": unknown member'],
    ['{"id":12345,"plan":"starter"}', 1, 'id: must be a string'],
    ['', 1, '"customers": must be a list of customers, each with its id and other members'],
    ['- id: a', 1, '"customers": must be a list'],
    ['customers: { a: { plan: starter } }', 1, '"customers": must be a list'],
    ['customers:\r\n- id: a\r\n\tplan: starter\r\n', 3, 'is not valid YAML: the line is indented with a tab'],
    ['customers: []\n---\ncustomers: []', 2, 'is not valid YAML: there is more than one document'],
    [`customers: ${'['.repeat(20_000)}`, 1, 'is not valid YAML: '],
    ['customers:\n- &a { id: a, plan: starter }\n- *b', 3, 'uses an alias (*name) whose anchor'],
    ['customers:\n- id: true\n  plan: starter', 2, 'id: must be a string'],
    ['customers:\n- id: { a: b }\n  plan: starter', 2, 'id: must be a string'],
    ['customers: &all\n- { id: a, plan: starter, name: *all }', 2, '"name": contains itself by an alias'],
    ['{"customers":[{"id":"a","plan":"starter"},\n{"id":"b"}]}', 2, 'plan: missing, and there is no customer'],
    [Buffer.from([0xff, 0xfe, 0x61]), 1, 'the file is not UTF-8 text'],
  ])('of %j are named with the line', async (text, line, what) => {
    const { status, stderr } = await apply(text);
    expect(status).toBe(1);
    expect(stderr).toContain(`FILE:${line}: ${what}`);
    expect(stderr.match(/^FILE:/gm)).toHaveLength(1);
    expect(stderr).toMatch(/Nothing was changed\.\n$/);
    expect(await idsOf()).toEqual([]);
  });
});

it('limits are checked with what the customer keeps, also under the former name of its plan', async () => {
  await create({ id: 'big', plan: 'enterprise', requests_per_hour: 5 });
  await system().write('old', { plan: 'beginner' });
  const { stderr } = await apply('customers:\n- id: big\n  requests_per_hour: null\n');
  expect(stderr).toBe('FILE:2: requests_per_hour: missing, and the plan is custom\nNothing was changed.\n');
  await applied(`customers:
- { id: big, plan: starter, requests_per_hour: null }
- { id: old, plan: starter, requests_per_hour: 7 }
`);
  expect(await customersOf()).toMatchObject([
    { plan: 'starter', requests_per_hour: null },
    { plan: 'beginner', requests_per_hour: 7 },
  ]);
});

it('a limit or suspension that has ended is left alone with a warning, so that a file stays good', async () => {
  const until = '2100-01-01T00:00:00.000Z';
  await create({ id: 'acme', plan: 'starter', temporary_limit: { requests_per_hour: 7, until } });
  const { stdout, stderr } = await applied(`customers:
- { id: acme, temporary_limit: { requests_per_hour: 9, until: 2020-01-01 } }
- { id: new, plan: starter, suspended: true, suspended_until: 2020-01-01T00:00:00+02:00 }
`);
  expect(stdout).toMatch(/created +new +plan="starter"$/m);
  expect(stderr.split('\n').slice(0, 2)).toEqual([
    'FILE:2: warning: temporary_limit: has ended, and is left alone; remove it',
    'FILE:3: warning: suspended_until: has ended, and is left alone; remove it',
  ]);
  expect(await customersOf()).toMatchObject([{ temporary_limit: { requests_per_hour: 7 } }, { suspended: false }]);
});

it('aliases of aliases are bounded', async () => {
  const bomb = `customers:\n- &a0 [x, x, x, x]\n${Array.from({ length: 12 }, (_, n) => `- &a${n + 1} [${`*a${n}, `.repeat(9)}]\n`).join('')}`;
  expect((await apply(bomb)).stderr).toContain('repeats too much by aliases (*name)\n');
});

describe('--prune', () => {
  const KEPT = 'customers: [{ id: acme }]';
  beforeEach(async () => {
    for (const id of ['acme', 'globex', 'initech']) await create({ id, plan: 'starter' });
  });

  it('without it, customers that the file does not name are left alone, and counted', async () => {
    expect((await applied(KEPT)).stderr).toBe(
      'There are no changes.\nCustomers: 1 unchanged, 2 not in the file and left alone.\n',
    );
    expect((await applied('customers: []')).stderr).toContain('Customers: 3 not in the file and left alone.\n');
    expect(await idsOf()).toHaveLength(3);
  });

  it('deletes them, as a dry run shows', async () => {
    const dry = await applied(KEPT, '--prune', '--dry-run');
    expect(dry.stdout).toMatch(/^ +would be deleted +globex\n +would be deleted +initech$/m);
    expect(dry.stderr).toBe('Customers: 1 unchanged, 2 would be deleted.\nNothing was changed.\n');
    expect(await idsOf()).toHaveLength(3);
    const { stdout } = await applied(KEPT, '--prune', '--yes', '--json');
    expect(JSON.parse(stdout).items).toEqual([
      { line: 1, outcome: 'unchanged', customer: 'acme', changes: {} },
      { line: null, outcome: 'deleted', customer: 'globex', changes: {} },
      { line: null, outcome: 'deleted', customer: 'initech', changes: {} },
    ]);
    expect(await idsOf()).toEqual(['acme']);
    expect((await admin('audit?customer=globex&limit=1')).items).toMatchObject([{ action: 'customer.delete' }]);
  });

  it('without a terminal and --yes, it is wrong usage, and nothing else is changed either', async () => {
    const file = await temporaryFile('customers.yaml', 'customers: [{ id: acme, name: Acme }]');
    const { status, stderr } = await tollgateFor(system().gateway)(['customers', 'apply', '-f', file, '--prune']);
    expect(status).toBe(2);
    expect(stderr).toMatch(/add --yes\n$/);
    expect(await customersOf()).toMatchObject([{ id: 'acme', name: null }, {}, {}]);
  });

  it('is refused for a file without customers', async () => {
    const { status, stderr } = await apply('customers: []', '--prune', '--yes');
    expect(status).toBe(1);
    expect(stderr).toBe(
      'FILE:1: customers: there is none, and --prune would delete all customers of the gateway\nNothing was changed.\n',
    );
    expect(await idsOf()).toHaveLength(3);
  });
});

/** A server before the gateway. `before` is called for each call; it may respond itself, and then returns true. */
function serverBefore(before: (method: string, res: ServerResponse, path: string) => unknown): Promise<string> {
  const { admin: origin } = system().gateway;
  return startServer(async (req, res) => {
    const { method = '', url = '', headers } = req;
    const body = Buffer.concat(await req.toArray());
    if (await before(method, res, url)) return;
    const { authorization = '', 'content-type': type = 'application/json' } = headers;
    const init = { method, headers: { authorization, 'content-type': type }, ...(body.length > 0 && { body }) };
    const response = await fetch(`${origin}${url}`, init);
    res.writeHead(response.status).end(await response.text());
  });
}

function respondUnavailable(res: ServerResponse): true {
  const problem = { status: 503, title: 'Unavailable', detail: 'Later.', code: 'store_unavailable' } as const;
  res.writeHead(503).end(JSON.stringify(problemDocument(problem)));
  return true;
}

it('what another apply creates or deletes meanwhile becomes as this file says', async () => {
  await create({ id: 'former', plan: 'starter' });
  const busy = await serverBefore(async (method, _res, path) => {
    if (method === 'POST') await create({ id: 'acme', plan: 'business' });
    if (method === 'DELETE') await callAdmin(system().gateway, path, { method });
  });
  const file = await temporaryFile('f', 'customers: [{ id: acme, plan: starter, name: Acme }]');
  const args = ['customers', 'apply', '-f', file, '--prune', '--yes', '--json'];
  const { status, stdout } = await tollgateHereFor({ admin: busy })(...args);
  expect({ status, items: JSON.parse(stdout).items }).toMatchObject({
    status: 0,
    items: [
      { outcome: 'changed', changes: { plan: { before: 'business', after: 'starter' } } },
      { outcome: 'deleted', customer: 'former' },
    ],
  });
  expect(await customersOf()).toMatchObject([{ id: 'acme', plan: 'starter', name: 'Acme' }]);
});

it('after a failure of the gateway, it stops, says what was done, prunes nothing, and can be repeated', async () => {
  let writes = 0;
  const failing = await serverBefore((method, res) => method !== 'GET' && ++writes > 5 && respondUnavailable(res));
  await create({ id: 'other', plan: 'starter' });
  const lines = Array.from({ length: 30 }, (_, index) => `{"id":"c-${index}","plan":"starter"}\n`).join('');
  const file = await temporaryFile('customers.jsonl', lines);
  const args = ['customers', 'apply', '-f', file, '--prune', '--yes'];
  const { status, stdout, stderr } = await tollgateHereFor({ admin: failing })(...args);
  expect(status).toBe(1);
  expect(stdout.match(/ created /g)).toHaveLength(5);
  expect(stdout).toMatch(/ not known +c-\d+$/m);
  expect(stderr).toMatch(
    /^Customers: 5 created, \d not known, \d+ not tried\.\n.*Later\..*\nThe changes stopped there\. Apply/,
  );
  expect(await idsOf()).toContain('other');

  const noDelete = await serverBefore((method, res) => method === 'DELETE' && respondUnavailable(res));
  expect(await tollgateHereFor({ admin: noDelete })(...args)).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^Customers: 5 unchanged, 25 created, 1 not known\.\n/),
  });
  expect(await tollgate(...args)).toMatchObject({ status: 0, stderr: 'Customers: 30 unchanged, 1 deleted.\n' });
  expect(await idsOf()).toHaveLength(30);
});

it('a customer that the gateway refuses fails alone, and nothing is pruned', async () => {
  const served: string[] = [];
  const failing = await startServer(({ method = '', url = '' }, res) => {
    served.push(`${method} ${url}`);
    const reply = (status: number, body: object) => void res.writeHead(status).end(JSON.stringify(body));
    if (url === '/admin/v1/config') return reply(200, { plans: { starter: { requests_per_hour: 1 } } });
    if (method === 'GET') {
      return reply(200, { items: ['a', 'b', 'c'].map((id) => ({ ...CUSTOMER_DOCUMENT, id })), next_cursor: null });
    }
    if (!url.endsWith('/a')) return reply(200, CUSTOMER_DOCUMENT);
    reply(404, problemDocument({ status: 404, title: 'Not found', detail: 'It is gone.', code: 'not_found' }));
  });
  const file = await temporaryFile('f', 'customers:\n- { id: a, name: A }\n- { id: b, name: B }\n');
  const { status, stdout, stderr } = await tollgateHereFor({ admin: failing })(
    ...['customers', 'apply', '-f', file, '--prune', '--yes'],
  );
  expect(status).toBe(1);
  expect(stdout).toMatch(/ refused +a$/m);
  expect(stdout).toMatch(/ changed +b +name="B"$/m);
  expect(stderr).toContain(':2: Not found: It is gone. (not_found)\nAll other customers of the file are as it says.');
  expect(served.filter((call) => call.startsWith('DELETE'))).toEqual([]);
});

it('reads standard input, aliases included, and substitutes nothing', async () => {
  const input = `customers:
- { id: a, plan: starter, temporary_limit: &promo { requests_per_hour: 9, until: 2100-01-01 } }
- { id: b, plan: starter, temporary_limit: *promo, name: "\${HOME}" }
`;
  const { status, stderr } = await tollgateFor(system().gateway)(['customers', 'apply', '-f', '-'], { input });
  expect({ status, stderr }).toEqual({ status: 0, stderr: 'Customers: 2 created.\n' });
  const temporary_limit = { requests_per_hour: 9, until: '2100-01-01T00:00:00.000Z' };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the name
  expect(await customersOf()).toMatchObject([{ temporary_limit }, { temporary_limit, name: '${HOME}' }]);
});

it('a token that may only read shows no difference of URLs that it does not see, and exports none', async () => {
  const key = await createIssuerKey('key-1');
  const issuer = await startIssuer(key);
  const jwt = { jwks_url: issuer.url, issuer: ISSUER, audience: AUDIENCE };
  const { gateway } = await startSystem({ config: { admin: { jwt } } });
  const reader = tollgateHereFor(gateway, await sign(key, claimsAt(systemClock.nowMs(), { scope: 'tollgate:read' })));
  const wanted = 'customers: [{ id: acme, notify_url: "https://hooks.example/secret" }]';
  const file = await temporaryFile('customers.yaml', wanted);
  const dryRun = ['customers', 'apply', '-f', file, '--dry-run'];

  expect((await reader(...dryRun)).stdout).toMatch(
    / would be changed +acme +notify_url="https:\/\/hooks\.example\/secret"$/m,
  );
  expect(await tollgateHereFor(gateway)('customers', 'apply', '-f', file)).toMatchObject({ status: 0 });
  expect(await reader(...dryRun)).toMatchObject({ status: 0, stdout: '' });
  const { stdout, stderr } = await reader('customers', 'export');
  expect(stdout).toBe('customers:\n  - id: "acme"\n    plan: "starter"\n');
  expect(stderr).toMatch(/^warning: notify_url is left out/);
  expect(
    await reader('customers', 'apply', '-f', await temporaryFile('f', 'customers: [{ id: acme, name: A }]')),
  ).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('tollgate:write'),
  });
});
