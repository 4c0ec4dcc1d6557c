/** A gateway with two workers, as processes: what holds for one process holds for all of them together. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { freePort } from '../../../bench/free-port.ts';
import { ask, CHECK_TOKEN } from '../../check/support.ts';
import { temporaryFile } from '../../cli/support.ts';
import { send } from '../../console/support.ts';
import { codeOf, createLink, exchange, PUBLIC_URL, sessionOf } from '../../portal/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../../support/admin.ts';
import { startBackend } from '../../support/backend.ts';
import { createCertificate } from '../../support/certificates.ts';
import { startShared } from '../../support/cleanup.ts';
import { readMetric } from '../../support/metrics.ts';
import { runProgram } from '../../support/process.ts';
import {
  agentOfTest,
  type Outcome,
  PATIENCE,
  REQUESTS,
  request,
  startWithWorkers,
  sum,
  tally,
  workersOf,
} from './support.ts';

const FAILURES_PER_MINUTE = 5;

/** Shared by tests that leave it with two workers. The first one expects its counters at 0, the last one stops it. */
const shared = startShared(() =>
  startWithWorkers({
    config: {
      auth: { failures_per_minute: FAILURES_PER_MINUTE },
      check: { host: '127.0.0.1', port: 0, token: CHECK_TOKEN },
      shutdown: { not_ready_ms: 1, drain_ms: 60_000 },
    },
  }),
);

it('admits exactly the quota across its workers, and counts each request once', async () => {
  const { gateway, backend } = shared();
  const key = await createCustomerWithKey(gateway, { id: 'limited', plan: 'enterprise', requests_per_hour: 200 });
  const agent = agentOfTest({ keepAlive: true, maxSockets: 100 });
  const outcomes = await Promise.all(Array.from({ length: 1000 }, () => request(agent, gateway.public, key)));
  expect(tally(outcomes)).toEqual({ 200: 200, 429: 800 });
  expect(backend.seen.length).toBe(200);

  await expect.poll(async () => sum(await readMetric(gateway, REQUESTS)), PATIENCE).toBe(1000);
  expect(sum(await readMetric(gateway, 'tollgate_request_duration_seconds_count'))).toBe(1000);
  expect(await readMetric(gateway, 'tollgate_store_up')).toEqual({ '': 1 });
  expect(Object.values(await readMetric(gateway, 'tollgate_config_info'))).toEqual([1]);
  const { body: status } = await callAdmin(gateway, '/status');
  expect(status).toMatchObject({ instances: 2, invalidation: { connected: true }, store: { up: true } });
  expect(status.workers).toMatchObject([
    { id: 1, ready: true, config_hash: status.config.hash, restarts: 0 },
    { id: 2, ready: true, config_hash: status.config.hash, restarts: 0 },
  ]);
  const explained = async () => (await callAdmin(gateway, '/admin/v1/customers/limited/explain')).body;
  expect((await explained()).usage.used).toBe(200);
  // Without those of a worker that stands still just then.
  await expect
    .poll(async () => (await explained()).instance.refusals, PATIENCE)
    .toMatchObject([{ code: 'quota_exceeded', count: 800 }]);
});

it('a worker that hangs fails no scrape and no call of the admin API, and is counted by its last report', async () => {
  const { gateway, key } = shared();
  const agent = agentOfTest({ keepAlive: false });
  const counted = async () => sum(await readMetric(gateway, REQUESTS));
  const before = await counted();
  await Promise.all(Array.from({ length: 20 }, () => request(agent, gateway.public, key)));
  await expect.poll(counted, PATIENCE).toBe(before + 20);
  const [hanging] = await workersOf(gateway);
  process.kill(hanging?.pid ?? 0, 'SIGSTOP');
  try {
    expect(await counted()).toBe(before + 20);
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/explain')).status).toBe(200);
    expect((await fetch(`${gateway.ops}/readyz`)).status).toBe(200);
  } finally {
    process.kill(hanging?.pid ?? 0, 'SIGCONT');
  }
});

it('an address that is in use ends the start, and says which setting to change', async () => {
  const { gateway, sections } = shared();
  const port = Number(new URL(gateway.public).port);
  const file = await temporaryFile('gateway.yaml', stringify({ ...sections, listen: { host: '127.0.0.1', port } }));
  const { status, stderr } = await runProgram({ args: ['start', '--config', file] });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^tollgate: cannot listen on 127\.0\.0\.1:\d+: something else listens there already; .*\n$/);
});

it('all workers serve the backends of a reload, and /status, /readyz and metrics combine what they say of each', async () => {
  const added = await startBackend();
  onTestFinished(() => added.close());
  const { gateway, key, file, sections } = shared();
  const down = `http://127.0.0.1:${await freePort()}`;
  const upstreams = { added: { urls: [added.url] }, down: { urls: [down] } };
  const routes = Object.keys(upstreams).map((name) => ({ path: `/${name}`, methods: ['GET'], upstream: name }));
  const withDefault = [{ path: '/api', methods: ['GET'] }, ...routes];
  const reloadWith = async (changed: object) => {
    await writeFile(file, stringify({ ...sections, ...changed }));
    return await callAdmin(gateway, '/admin/v1/config/reload', { method: 'POST' });
  };
  const reload = await reloadWith({ upstreams, routes: withDefault, aliases: {}, usage_path: null });
  onTestFinished(async () => void (await reloadWith({})));
  // The file is watched, too: that may have been first.
  expect(reload.body.result).toMatch(/^(?:applied|unchanged)$/);
  // Each connection goes to the next worker.
  const headers = { authorization: `Bearer ${key}`, connection: 'close' };
  const statusOf = async (path: string) => (await fetch(gateway.public + path, { headers })).status;
  for (let i = 0; i < 4; i++) expect(await statusOf('/added')).toBe(200);
  expect(added.seen).toHaveLength(4);
  for (let i = 0; i < 12; i++) expect(await statusOf('/down')).toBe(503);
  const readiness = async () => (await fetch(`${gateway.ops}/readyz`)).json();
  await expect.poll(readiness, PATIENCE).toEqual({ status: 'degraded', reasons: ['upstream_down'] });
  expect((await callAdmin(gateway, '/status')).body.upstreams).toMatchObject([
    { backend: 'default', up: true },
    { backend: 'added', up: true },
    { backend: 'down', url: down, up: false },
  ]);
  const up = (name: string, url: string) => `backend="${name}",upstream="${url}"`;
  expect(await readMetric(gateway, 'tollgate_upstream_up')).toMatchObject({
    [up('added', added.url)]: 1,
    [up('down', down)]: 0,
  });
});

it('a reload is in effect at all workers when its response arrives, and a worker that starts later uses it', async () => {
  const { gateway, file, sections } = shared();
  const key = await createCustomerWithKey(gateway, { id: 'of-a-plan', plan: 'business' });
  const plans = { business: { requests_per_hour: 777 }, enterprise: { requests_per_hour: 'custom' } };
  await writeFile(file, stringify({ ...sections, plans }));
  const { body: reloaded } = await callAdmin(gateway, '/admin/v1/config/reload', { method: 'POST' });
  expect(['applied', 'unchanged']).toContain(reloaded.result);
  const limits = async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        fetch(`${gateway.public}/v1/conversations`, {
          headers: { authorization: `Bearer ${key}`, connection: 'close' },
        }),
      ),
    );
    return new Set(answers.map(({ headers }) => headers.get('x-ratelimit-limit')));
  };
  expect(await limits()).toEqual(new Set(['777']));
  const [victim, survivor] = await workersOf(gateway);
  expect([victim?.config_hash, survivor?.config_hash]).toEqual([reloaded.hash, reloaded.hash]);
  process.kill(victim?.pid ?? 0, 'SIGKILL');
  await expect
    .poll(() => workersOf(gateway), PATIENCE)
    .toMatchObject([{ restarts: (victim?.restarts ?? 0) + 1, ready: true, config_hash: reloaded.hash }, survivor]);
  expect(await limits()).toEqual(new Set(['777']));
});

it('failed keys of an address count at all workers', async () => {
  const { gateway } = shared();
  const agent = agentOfTest({ keepAlive: false });
  const outcomes: Outcome[] = [];
  const fail = async () => outcomes.push(await request(agent, gateway.public, 'no-such-key'));
  await expect
    .poll(async () => {
      await fail();
      // Each of two connections in a row goes to another worker.
      return outcomes.slice(-2).map(({ status }) => status);
    }, PATIENCE)
    .toEqual([429, 429]);
  const { 401: told = 0 } = tally(outcomes);
  expect(told).toBeGreaterThanOrEqual(FAILURES_PER_MINUTE);
  expect(told).toBeLessThan(2 * FAILURES_PER_MINUTE);
});

// After the failures above, because a wrong token is one more failure of the address.
it('workers serve the listener too, and share its port', async () => {
  const { gateway } = shared();
  const key = await createCustomerWithKey(gateway, { id: 'checked', plan: 'enterprise', requests_per_hour: 20 });
  const listener = { check: gateway.check ?? '' };
  const statuses = await Promise.all(
    Array.from({ length: 40 }, async () => {
      return (await ask(listener, '/ext-authz/v1/conversations', { headers: bearer(key) })).status;
    }),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(20);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect((await ask(listener, '/ext-authz/v1/conversations', { headers: bearer(key), token: 'wrong' })).status).toBe(
    500,
  );
});

it('a worker that hangs delays at most one new connection, which is closed when the worker dies', async () => {
  const { gateway, key } = shared();
  const [hanging] = await workersOf(gateway);
  process.kill(hanging?.pid ?? 0, 'SIGSTOP');
  const outcomes: Outcome[] = [];
  const agent = agentOfTest({ keepAlive: false });
  const requests = Array.from({ length: 20 }, async () => {
    outcomes.push(await request(agent, gateway.public, key));
  });
  await expect.poll(() => tally(outcomes), PATIENCE).toEqual({ 200: 19 });
  // The hanging worker has not acknowledged its connection: without close-handovers.ts, it would stay open.
  process.kill(hanging?.pid ?? 0, 'SIGKILL');
  await Promise.all(requests);
  expect(tally(outcomes)).toEqual({ 200: 19, none: 1 });
});

// Ends the gateway that the tests above share.
it('SIGTERM while a worker is being replaced ends all processes in order, long before the deadline', async () => {
  const { gateway } = shared();
  const ready = async () => (await workersOf(gateway)).map((worker) => worker.ready);
  await expect.poll(ready, PATIENCE).toEqual([true, true]);
  const [, killed] = await workersOf(gateway);
  process.kill(Number(killed?.pid), 'SIGKILL');
  // As soon as the next process exists: it does not listen yet.
  const isReplaced = async () => ![null, killed?.pid].includes((await workersOf(gateway))[1]?.pid);
  await expect.poll(isReplaced, { timeout: 30_000, interval: 10 }).toBe(true);
  gateway.signal('SIGTERM');
  const { status, stderr, stdout } = await gateway.finished;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('"msg":"tollgate stopped"');
  expect(stdout).not.toContain('workers did not exit in time');
});

describe('over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-workers-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const [old, fresh] = [createCertificate({ name: 'old.example' }), createCertificate({ name: 'new.example' })];
  const tls = { cert_file: join(folder, 'tls.crt'), key_file: join(folder, 'tls.key') };
  const put = async ({ cert, key }: typeof old) => {
    await writeFile(tls.key_file, key);
    await writeFile(tls.cert_file, cert);
  };
  let holds = false;
  const held: ServerResponse[] = [];
  const overTls = startShared(async () => {
    await put(old);
    return await startWithWorkers({
      answer: (_req, res) => void (holds ? held.push(res) : res.end('{}')),
      config: {
        listen: { host: '127.0.0.1', port: 0, tls },
        portal: { host: '127.0.0.1', port: 0, public_url: PUBLIC_URL },
      },
    });
  });

  /** A connection for each request. */
  const agentOverTls = () => {
    const agent = new Agent({ rejectUnauthorized: false, keepAlive: false });
    onTestFinished(() => agent.destroy());
    return agent;
  };

  it('a certificate that is replaced is used by all workers', async () => {
    const { gateway } = overTls();
    // Connections in a row go to the workers in turn.
    const shown = async () => [await certificateOf(gateway.public), await certificateOf(gateway.public)];
    expect(await shown()).toEqual(['old.example', 'old.example']);
    await put(fresh);
    await expect.poll(shown, PATIENCE).toEqual(['new.example', 'new.example']);
  });

  it('a gateway with two workers serves the portal, and a revoked key is refused by both', async () => {
    const { gateway } = overTls();
    const key = await createCustomerWithKey(gateway, { id: 'with-portal', plan: 'enterprise', requests_per_hour: 100 });
    const origin = gateway.portal ?? '';
    const opened = await exchange(origin, codeOf(await createLink(gateway, 'with-portal')));
    const session = sessionOf(opened);
    expect((await send(origin, 'GET', '/portal/v1/usage', session)).status).toBe(200);
    const { id } = (await send(origin, 'GET', '/portal/v1/keys', session)).body.items[0];
    const agent = agentOverTls();
    const call = async () => (await request(agent, gateway.public, key)).status;
    for (let i = 0; i < 4; i++) expect(await call()).toBe(200);
    expect((await send(origin, 'DELETE', `/portal/v1/keys/${id}`, session)).status).toBe(204);
    await expect.poll(call).toBe(401);
    for (let i = 0; i < 4; i++) expect(await call()).toBe(401);
  });

  // Ends the gateway that these tests share.
  it('a second signal ends all processes at once', async () => {
    const { gateway, key } = overTls();
    const pids = (await workersOf(gateway)).map(({ pid }) => pid ?? 0);
    holds = true;
    const underWay = request(agentOverTls(), gateway.public, key);
    await expect.poll(() => held.length, PATIENCE).toBe(1);
    gateway.signal('SIGTERM');
    await expect.poll(gateway.output, PATIENCE).toContain('no longer ready');
    gateway.signal('SIGTERM');
    expect((await gateway.finished).status).toBe(1);
    expect((await underWay).status).toBeUndefined();
    await expect.poll(() => pids.filter(isRunning), PATIENCE).toEqual([]);
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The name in the certificate that a new connection is shown. */
async function certificateOf(origin: string): Promise<unknown> {
  const { hostname, port } = new URL(origin);
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
}
