import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { CUSTOMER_DOCUMENT, startServer, temporaryFile, tollgateHereFor } from './support.ts';

let store: TestStore;
let gateway: TestGateway;

beforeEach(async () => {
  store = await EMBEDDED_STORE.start();
  const plans = {
    starter: { requests_per_hour: 1000, formerly: ['beginner'] },
    enterprise: { requests_per_hour: 'custom' },
    metered: { requests_per_hour: 1000, period: { per: 'month', requests: 'custom' } },
  };
  const overrides = { vip: { requests_per_hour: 7 }, metered: { period_requests: 7 } };
  gateway = await startTestGateway({
    storeUrl: store.url,
    upstreamUrl: 'http://127.0.0.1:9',
    config: { plans, overrides },
  });
});

afterEach(async () => {
  await gateway.close();
  await store.close();
});

async function importText(text: string, ...options: string[]) {
  const file = await temporaryFile('customers', text);
  const finished = await tollgateHereFor(gateway)('customers', 'import', '--file', file, ...options);
  return { ...finished, stderr: finished.stderr.replaceAll(file, 'FILE') };
}

const outcomesOf = (stdout: string) => JSON.parse(stdout).items.map(({ outcome }: { outcome: string }) => outcome);
const customersOf = async () => (await callAdmin(gateway, '/admin/v1/customers')).body.items;

const CSV = `plan,id,name,requests_per_hour
starter,acme,"Acme, Inc.",
enterprise,globex,,50000
enterprise,vip,,
`;

it.each([
  ['CSV', CSV],
  [
    'JSON Lines',
    `{"plan":"starter","id":"acme","name":"Acme, Inc."}
{"plan":"enterprise","id":"globex","requests_per_hour":50000,"name":null}

{"plan":"enterprise","id":"vip"}`,
  ],
])('creates the customers of a file of %s', async (_format, text) => {
  const { status, stdout, stderr } = await importText(text);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^LINE +OUTCOME +CUSTOMER +PLAN +DIFFERS IN +NAME$/m);
  expect(stdout).toMatch(/ imported +acme +starter +Acme, Inc\.$/m);
  expect(await customersOf()).toMatchObject([
    { id: 'acme', name: 'Acme, Inc.', plan: 'starter', requests_per_hour: null },
    { id: 'globex', name: null, plan: 'enterprise', requests_per_hour: 50_000 },
    { id: 'vip', plan: 'enterprise', limit: 7 },
  ]);
});

it.each([
  [
    'CSV',
    `id,plan,temporary_limit,suspended,suspended_until,notify_url
acme,starter,2000 until 2100-01-01,,,https://hooks.example/acme
globex,starter,,1,,
initech,starter,,true,2100-01-01T12:00:00Z,
hooli,starter,,false,,
`,
  ],
  [
    'JSON Lines',
    `{"id":"acme","plan":"starter","temporary_limit":{"requests_per_hour":2000,"until":"2100-01-01T00:00:00Z"},"notify_url":"https://hooks.example/acme"}
{"id":"globex","plan":"starter","suspended":true,"suspended_until":null}
{"id":"initech","plan":"starter","suspended_until":"2100-01-01T12:00:00Z"}
{"id":"hooli","plan":"starter","suspended":false}`,
  ],
])('limits and suspensions that end, and those without an end, are imported from %s, and compared', async (_, text) => {
  expect(await importText(text)).toMatchObject({ status: 0, stderr: '' });
  const until = '2100-01-01T00:00:00.000Z';
  expect(await customersOf()).toMatchObject([
    { id: 'acme', temporary_limit: { requests_per_hour: 2000, until }, notify_url: 'https://hooks.example/acme' },
    { id: 'globex', suspended: true, suspended_until: null },
    { id: 'hooli', suspended: false },
    { id: 'initech', suspended: true, suspended_until: '2100-01-01T12:00:00.000Z' },
  ]);
  for (const id of ['acme', 'initech']) {
    const body = { temporary_limit: { requests_per_hour: 5, until }, suspended: false };
    await callAdmin(gateway, `/admin/v1/customers/${id}`, { method: 'PATCH', body });
  }
  const again = await importText(text, '--json');
  expect(outcomesOf(again.stdout)).toEqual(['differs', 'already there', 'differs', 'already there']);
  const [acme, , initech] = JSON.parse(again.stdout).items;
  expect(acme.differs).toEqual(['temporary_limit']);
  expect(initech.differs).toContain('suspended_until');
});

it('can be repeated: existing customers stay unchanged, and differences are shown', async () => {
  await importText(CSV);
  await callAdmin(gateway, '/admin/v1/customers/globex', {
    method: 'PATCH',
    body: { requests_per_hour: 9, name: 'G' },
  });
  const again = await importText(`${CSV}starter,new,,\n`, '--json');
  expect(again.status).toBe(0);
  expect(JSON.parse(again.stdout).items).toMatchObject([
    { line: 2, outcome: 'already there', differs: [] },
    { line: 3, outcome: 'differs', customer: 'globex', differs: ['requests_per_hour'] },
    { line: 4, outcome: 'already there' },
    { line: 5, outcome: 'imported', customer: 'new' },
  ]);
  expect(again.stderr).toMatch(/^Customers that differ were not changed/);
  expect((await callAdmin(gateway, '/admin/v1/customers/globex')).body.requests_per_hour).toBe(9);
});

it('says as a dry run what it would do, and does nothing', async () => {
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'acme', plan: 'starter', name: 'Other' } });
  const { status, stdout, stderr } = await importText(CSV, '--dry-run', '--json');
  expect(status).toBe(0);
  expect(outcomesOf(stdout)).toEqual(['differs', 'would be imported', 'would be imported']);
  expect(stderr).toMatch(/\nNothing was imported\.\n$/);
  expect(await customersOf()).toHaveLength(1);
});

it('prints all faults of a file in one run, and imports nothing', async () => {
  const { status, stdout, stderr } = await importText(`id,plan,name,requests_per_hour
good,starter,,
.bad,starter,,
gold,golden,,
former,beginner,,
custom,enterprise,,
zero,starter,,0
text,golden,,many
good,starter,,
short,starter
`);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  const plan = 'plan: must be one of the configured plans: starter, enterprise, metered';
  expect(stderr.split('\n')).toEqual([
    expect.stringMatching(/^FILE:3: id: must be 1 to 128/),
    `FILE:4: ${plan}`,
    `FILE:5: ${plan}`,
    'FILE:6: requests_per_hour: missing, and the plan is custom',
    'FILE:7: requests_per_hour: must be at least 1',
    'FILE:8: requests_per_hour: must be a number',
    `FILE:8: ${plan}`,
    'FILE:9: it has the same id as line 2',
    'FILE:10: it has 2 fields where the header line has 4',
    'Nothing was imported.',
    '',
  ]);
  expect(await customersOf()).toEqual([]);
});

it('names what is wrong with a limit or a suspension for a time, and imports nothing', async () => {
  const { stderr } = await importText(`id,plan,temporary_limit,suspended,suspended_until
a,starter,2000,,
b,starter,many until 2100-01-01,,
c,starter,2000 until 2020-01-01,,
d,starter,,yes,
e,starter,,,2020-01-01
f,starter,,0,2100-01-01
g,enterprise,2000 until 2100-01-01,,
`);
  expect(stderr.split('\n')).toEqual([
    expect.stringMatching(/^FILE:2: temporary_limit.until: must be an ISO 8601 time/),
    'FILE:3: temporary_limit.requests_per_hour: must be a number',
    'FILE:4: temporary_limit.until: must be in the future',
    'FILE:5: suspended: must be a boolean',
    'FILE:6: suspended_until: must be in the future',
    'FILE:7: suspended_until: must not be given with suspended: false',
    'FILE:8: requests_per_hour: missing, and the plan is custom',
    'Nothing was imported.',
    '',
  ]);
  expect(await customersOf()).toEqual([]);
});

it.each([
  ['', /^FILE:1: there is no header line; it names columns: id, plan, name, notify_url, requests_per_hour, /],
  ['name\n', /^FILE:1: the header line has no column id and no column plan\n/],
  ['id,plan,tier\n', /^FILE:1: the header line has a column that is none of id, plan,/],
])('refuses a file with the header %j', async (text, fault) => {
  expect((await importText(text)).stderr).toMatch(fault);
});

it('bounds the number of calls in progress', async () => {
  let [underWay, most, posts] = [0, 0, 0];
  const held: ServerResponse[] = [];
  const admin = await startServer((req, res) => {
    if (req.method === 'GET') return void res.end(JSON.stringify({ plans: { starter: { requests_per_hour: 1 } } }));
    most = Math.max(most, ++underWay);
    posts++;
    // Nothing is answered before eight are in progress, or they are the last.
    held.push(res);
    if (held.length < 8 && posts < 100) return;
    for (const each of held.splice(0)) {
      underWay--;
      each.writeHead(201).end(JSON.stringify(CUSTOMER_DOCUMENT));
    }
  });
  const lines = Array.from({ length: 100 }, (_, index) => `c-${index},starter\n`);
  const file = await temporaryFile('customers.csv', `id,plan\n${lines.join('')}`);
  expect((await tollgateHereFor({ admin })('customers', 'import', '--file', file)).status).toBe(0);
  expect([most, posts]).toEqual([8, 100]);
});

it('takes limits of periods and their beginnings, which custom periods need, and compares them', async () => {
  const { status, stderr } = await importText(`id,plan,requests_per_hour,period_requests,period_anchor
acme,metered,,,
globex,metered,,x,2026-01-31T10:30:00Z
metered,enterprise,,,
vip,metered,,,
`);
  expect(status).toBe(1);
  expect(stderr.trim().split('\n')).toMatchObject([
    'FILE:2: period_requests: missing, and the plan is custom',
    'FILE:3: period_requests: must be a number',
    'FILE:3: period_anchor: must be on a whole hour',
    'FILE:4: requests_per_hour: missing, and the plan is custom',
    'FILE:5: period_requests: missing, and the plan is custom',
    expect.anything(),
  ]);
  const good = `id,plan,period_requests,period_anchor
acme,metered,70000,2026-01-31
metered,metered,,2026-01-31T10:00:00Z
`;
  expect(await importText(good)).toMatchObject({ status: 0, stderr: '' });
  expect(await customersOf()).toMatchObject([
    { id: 'acme', period_requests: 70_000, period_anchor: '2026-01-31T00:00:00.000Z' },
    { id: 'metered', period: { limit: 7, limit_source: 'override' }, period_anchor: '2026-01-31T10:00:00.000Z' },
  ]);
  expect(outcomesOf((await importText(good, '--json')).stdout)).toEqual(['already there', 'already there']);
});
