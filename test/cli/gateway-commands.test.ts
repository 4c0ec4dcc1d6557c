/** What a gateway says of itself, and what its other listeners say to a command. */
import { readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { callAdmin } from '../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { startServer, tollgateHereFor } from './support.ts';

let store: TestStore;
let gateway: TestGateway;
let tollgate: ReturnType<typeof tollgateHereFor>;

beforeEach(async () => {
  store = await EMBEDDED_STORE.start();
  const plans = { starter: { requests_per_hour: 1000 } };
  const overrides = { acme: { requests_per_hour: 7 } };
  gateway = await startTestGateway({
    storeUrl: store.url,
    upstreamUrl: 'http://127.0.0.1:9',
    config: { plans, overrides },
  });
  tollgate = tollgateHereFor(gateway);
});

afterEach(async () => {
  await gateway.close();
  await store.close();
});

async function edit(from: string, to: string): Promise<void> {
  await writeFile(gateway.file, (await readFile(gateway.file, 'utf8')).replace(from, to));
}

describe('status', () => {
  it('shows what /status says, for people and as JSON', async () => {
    const { status, stdout, stderr } = await tollgate('status');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^store +embedded, reachable$/m);
    expect(stdout).toMatch(/^last reload +none since the start$/m);
    expect(stdout).toMatch(/^default +http:\/\/127\.0\.0\.1:9 +yes$/m);
    const { uptime_seconds: _, ...answer } = (await callAdmin(gateway, '/status')).body;
    expect(JSON.parse((await tollgate('status', '--json')).stdout)).toMatchObject(answer);
  });

  it('ends with 1, and says what is wrong, when the file on the disk was refused', async () => {
    await edit('requests_per_hour: 1000', 'requests_per_hour: none');
    await tollgate('reload');
    const { status, stdout, stderr } = await tollgate('status');
    expect(status).toBe(1);
    expect(stdout).toMatch(/^last reload +invalid at /m);
    expect(stderr).toMatch(
      /^tollgate: the gateway is degraded: The configuration file was refused \(invalid\)\. .*requests_per_hour/,
    );
  });
});

describe('reload', () => {
  it('says that nothing changed', async () => {
    expect((await tollgate('reload')).stdout).toMatch(/^reload +unchanged$/m);
    expect(JSON.parse((await tollgate('reload', '--json')).stdout)).toMatchObject({ result: 'unchanged', changes: [] });
  });

  it('shows what changed', async () => {
    // A gateway watches its file and may be first: so another server answers as it would.
    const text = 'plans.starter.requests_per_hour: 1000 → 800';
    const changes = [
      { key: 'plans.starter.requests_per_hour', before: 1000, after: 800, takes_effect: 'reload', text },
    ];
    const answer = JSON.stringify({
      result: 'applied',
      hash: 'abc123',
      changes,
      changes_total: 101,
      warnings: ['a.yaml:1: warning: x'],
    });
    const admin = await startServer((_req, res) => res.end(answer));
    const { status, stdout, stderr } = await tollgateHereFor({ admin })('reload');
    expect({ status, stderr }).toEqual({ status: 0, stderr: 'a.yaml:1: warning: x\n' });
    expect(stdout).toMatch(/^reload +applied\nhash +abc123\nchanges +101, of which the first 1 are listed\n/);
    expect(stdout).toContain('\nplans.starter.requests_per_hour: 1000 → 800\n');
  });

  it.each([
    ['faults', 'requests_per_hour: 1000', 'requests_per_hour: none', /:\d+: plans\.starter\.requests_per_hour: /],
    ['what needs a restart', 'port: 0', 'port: 1', /listen\.port.*needs a restart/],
  ])('of a file that has %s: status 1, each problem in a line', async (_what, from, to, problem) => {
    await edit(from, to);
    const { status, stdout, stderr } = await tollgate('reload');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.split('\n')[0]).toMatch(problem);
    expect(stderr).toMatch(/^Nothing was applied/m);
  });
});

it('config show: the running configuration as YAML or JSON, without secrets', async () => {
  const { stdout } = await tollgate('config', 'show');
  const { body } = await callAdmin(gateway, '/admin/v1/config');
  expect(parse(stdout)).toEqual(body);
  expect(stdout).toMatch(/^ {4}requests_per_hour: 1000$/m);
  expect(JSON.parse((await tollgate('config', 'show', '--json')).stdout)).toEqual(body);
});

it('preview ends with 1 for a file that a reload would refuse, after its changes', async () => {
  expect((await tollgate('preview', gateway.file)).status).toBe(0);
  await edit('port: 0', 'port: 1');
  for (const options of [[], ['--json']]) {
    const { status, stdout, stderr } = await tollgate('preview', gateway.file, ...options);
    expect(status).toBe(1);
    expect(stdout).toContain('listen.port');
    expect(stderr).toBe(`${gateway.file}: a reload would be refused: a restart is needed\n`);
  }
});

it('says that an override goes before a number that was set', async () => {
  const created = await tollgate('customers', 'create', 'acme', '--plan', 'starter', '--requests-per-hour', '5');
  expect(created.stderr).toMatch(/^The limit stays 7 requests an hour: an override .*"tollgate explain acme"/);
  expect(created.stdout).toMatch(/^requests_per_hour +5$/m);
  const updated = await tollgate('customers', 'update', 'acme', '--requests-per-hour', '9');
  expect(updated.stderr).toContain('The limit stays 7 requests an hour');
  expect((await tollgate('customers', 'update', 'acme', '--name', 'Acme')).stderr).toBe('');
});

describe.each([
  ['public', 'Available paths: /api/v1/conversations'],
  ['ops', 'This listener has /metrics'],
] as const)('with an --admin-url that is the %s listener', (listener, paths) => {
  it.each([
    ['a call that reads', ['customers', 'show', 'acme']],
    ['a call that deletes', ['customers', 'delete', 'acme', '--yes']],
    ['the status', ['status']],
  ])('%s fails, and names the paths of that listener', async (_what, args) => {
    const { status, stderr } = await tollgateHereFor({ admin: gateway[listener] })(...args);
    expect(status).toBe(1);
    expect(stderr).toContain(paths);
  });
});
