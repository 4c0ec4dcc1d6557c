/** Routes to several backends: each with settings, connections and health of its own. */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { temporaryFile } from '../cli/support.ts';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { get, openBackend, openHeldBackend, routesTo, startWithBackends } from '../support/several-backends.ts';
import { createPemPair } from '../upstream/identity/support.ts';

const readiness = async (ops: string) => {
  const response = await fetch(`${ops}/readyz`);
  return [response.status, await response.json()];
};

describe('a route that names a backend', () => {
  it('is forwarded to it alone, with the credentials and the Host of its settings', async () => {
    const [billing, search] = [await openBackend(), await openBackend()];
    const system = await startWithBackends({
      billing: { urls: [`${billing.url}/base`], credentials: 'replace', authorization: 'Basic YTpi' },
      search: { urls: [search.url], credentials: 'forward', preserve_host: true },
    });
    const { backend, gateway, key } = system;
    for (const name of ['default', 'billing', 'search']) expect(await get(system, name)).toEqual([200]);
    const seen = [backend, billing, search].map((each) =>
      each.seen.map(({ url, headers }) => [url, headers.authorization, headers.host]),
    );
    expect(seen).toEqual([
      [['/default/x', undefined, new URL(backend.url).host]],
      [['/base/billing/x', 'Basic YTpi', new URL(billing.url).host]],
      [['/search/x', `Bearer ${key}`, new URL(gateway.public).host]],
    ]);
    const lines = () => gateway.logs.filter(({ msg }) => msg === 'request').map((line) => line.backend);
    await expect.poll(lines).toEqual(['default', 'billing', 'search']);
    expect(await readMetric(gateway, 'tollgate_upstream_duration_seconds_count')).toEqual({
      'backend="default",route="/default/{rest...}"': 1,
      'backend="billing",route="/billing/{rest...}"': 1,
      'backend="search",route="/search/{rest...}"': 1,
    });
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(3);
  });

  it('may override the timeouts of its backend', async () => {
    const hung = await openHeldBackend();
    const [fast] = routesTo('hung') as unknown as [object];
    const slow = { path: '/slow/{rest...}', methods: ['GET'], upstream: 'hung' };
    const system = await startWithBackends(
      { hung: { urls: [hung.url], response_timeout_ms: 600_000 } },
      { routes: [...(routesTo('default') as never), { ...fast, response_timeout_ms: 150 }, slow] as never },
    );
    const waiting = get(system, 'slow');
    expect(await get(system, 'hung')).toEqual([504, 'gateway_timeout']);
    hung.held.at(0)?.end();
    hung.held.at(1)?.end();
    expect(await waiting).toEqual([200]);
  });
});

it.each([
  ['idle_timeout', { idle_timeout_ms: 150 }],
  ['total_timeout', { response_timeout_ms: 1500, total_timeout_ms: 1500 }],
])('a route may override what truncates a response: %s', async (failure, timeouts) => {
  const slow = await openBackend((_req, res) => void res.write('some'));
  const route = { path: '/slow/{rest...}', methods: ['GET'], upstream: 'slow', ...timeouts };
  const system = await startWithBackends({ slow: { urls: [slow.url] } }, { routes: [route] as never });
  await expect(get(system, 'slow')).rejects.toThrow();
  const failures = () => system.gateway.logs.filter(({ msg }) => msg === 'request').map((line) => line.failure);
  await expect.poll(failures).toEqual([failure]);
});

describe('a backend that is down', () => {
  it('fails its own routes only, and degrades the gateway, also when all are down', async () => {
    const port = await freePort();
    const down = `http://127.0.0.1:${port}`;
    const system = await startWithBackends({ billing: { urls: [down] } });
    const { gateway, backend } = system;
    expect(await readiness(gateway.ops)).toEqual([200, { status: 'ready', reasons: [] }]);
    for (let i = 0; i < 3; i++) expect(await get(system, 'billing')).toEqual([503, 'upstream_unavailable']);
    expect(await get(system, 'default')).toEqual([200]);
    const degraded = [200, { status: 'degraded', reasons: ['upstream_down'] }];
    await expect.poll(() => readiness(gateway.ops)).toEqual(degraded);
    const { upstreams, problems } = (await callAdmin(gateway, '/status')).body;
    expect(upstreams).toMatchObject([
      { backend: 'default', url: backend.url, up: true },
      { backend: 'billing', url: down, up: false, reason: 'unreachable' },
    ]);
    expect(problems.map(({ what }: { what: string }) => what)).toContain(
      `${down} of the backend billing gets no requests (unreachable).`,
    );
    expect(await readMetric(gateway, 'tollgate_upstream_up')).toEqual({
      [`backend="default",upstream="${backend.url}"`]: 1,
      [`backend="billing",upstream="${down}"`]: 0,
    });
    expect(gateway.logs).toContainEqual(
      expect.objectContaining({ backend: 'billing', msg: 'an upstream is out of service' }),
    );

    await backend.close();
    await expect.poll(() => get(system, 'default')).toEqual([503, 'upstream_unavailable']);
    await expect.poll(() => readiness(gateway.ops)).toEqual(degraded);
  });

  it('is not down while one of its upstreams is in service', async () => {
    const up = await openBackend();
    const down = `http://127.0.0.1:${await freePort()}`;
    const system = await startWithBackends({ billing: { urls: [down, up.url] } });
    const isOut = async () => (await callAdmin(system.gateway, '/status')).body.upstreams[1].up === false;
    await expect.poll(async () => [await get(system, 'billing'), await isOut()]).toEqual([[200], true]);
    expect(await readiness(system.gateway.ops)).toEqual([200, { status: 'ready', reasons: [] }]);
  });
});

describe('a backend that hangs', () => {
  it('holds at most half of limits.in_flight while another has work: 503 overloaded, free', async () => {
    const [hung, busy] = [await openHeldBackend(), await openHeldBackend()];
    const upstreams = { hung: { urls: [hung.url] }, busy: { urls: [busy.url] } };
    const system = await startWithBackends(upstreams, { limits: { in_flight: 20 } });
    const { gateway } = system;
    const work = get(system, 'busy');
    await expect.poll(() => busy.held.length).toBe(1);
    const waiting = Array.from({ length: 10 }, () => get(system, 'hung'));
    await expect.poll(() => hung.held.length).toBe(10);
    expect(await get(system, 'hung')).toEqual([503, 'overloaded']);
    expect(await get(system, 'default')).toEqual([200]);
    expect(gateway.logs).toContainEqual(
      expect.objectContaining({ backend: 'hung', msg: expect.stringContaining('half of limits.in_flight') }),
    );
    for (const response of hung.held) response.end();
    expect(await Promise.all(waiting)).toEqual(Array(10).fill([200]));
    const again = get(system, 'hung');
    await expect.poll(() => hung.held.length).toBe(11);
    hung.held.at(-1)?.end();
    expect(await again).toEqual([200]);
    busy.held[0]?.end();
    expect(await work).toEqual([200]);
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(13);
  });

  it('may hold all of limits.in_flight while no other has work', async () => {
    const hung = await openHeldBackend();
    const system = await startWithBackends({ hung: { urls: [hung.url] } }, { limits: { in_flight: 10 } });
    const waiting = Array.from({ length: 10 }, () => get(system, 'hung'));
    await expect.poll(() => hung.held.length).toBe(10);
    expect(await get(system, 'hung')).toEqual([503, 'overloaded']);
    for (const response of hung.held) response.end();
    expect(await Promise.all(waiting)).toEqual(Array(10).fill([200]));
  });

  it('keeps its share across reloads that change it', async () => {
    const [hung, busy] = [await openHeldBackend(), await openHeldBackend()];
    const upstreams = { hung: { urls: [hung.url] }, busy: { urls: [busy.url] } };
    const system = await startWithBackends(upstreams, { limits: { in_flight: 8 } });
    const work = get(system, 'busy');
    await expect.poll(() => busy.held.length).toBe(1);
    const waiting = Array.from({ length: 4 }, () => get(system, 'hung'));
    await expect.poll(() => hung.held.length).toBe(4);
    await rewrite(system.gateway, { upstreams: { ...upstreams, hung: { ...upstreams.hung, max_connections: 7 } } });
    expect(await takeOver(system.gateway)).toBe('applied');
    expect(await get(system, 'hung')).toEqual([503, 'overloaded']);
    for (const response of [...hung.held, ...busy.held]) response.end();
    await Promise.all([work, ...waiting]);
  });
});

describe('a reload', () => {
  it('adds a backend, and removes one whose requests in progress end', async () => {
    const [old, added] = [await openHeldBackend(), await openBackend()];
    const system = await startWithBackends({ old: { urls: [old.url] } });
    const { gateway } = system;
    const inProgress = get(system, 'old');
    await expect.poll(() => old.held.length).toBe(1);
    await rewrite(gateway, { upstreams: { added: { urls: [added.url] } }, routes: routesTo('default', 'added') });
    expect(await takeOver(gateway)).toBe('applied');
    expect(await get(system, 'added')).toEqual([200]);
    expect(await get(system, 'old')).toEqual([404, 'not_found']);
    const { upstreams } = (await callAdmin(gateway, '/status')).body;
    expect(upstreams.map(({ backend }: { backend: string }) => backend)).toEqual(['default', 'added']);
    old.held[0]?.end();
    expect(await inProgress).toEqual([200]);
  });

  it('changes a backend, and an unchanged one keeps its connections', async () => {
    const [kept, before, after] = [await openHeldBackend(), await openHeldBackend(), await openBackend()];
    const upstreams = { kept: { urls: [kept.url] }, moved: { urls: [before.url] } };
    const system = await startWithBackends(upstreams);
    const { gateway } = system;
    const [first, inProgress] = [get(system, 'kept'), get(system, 'moved')];
    await expect.poll(() => [kept.held.length, before.held.length]).toEqual([1, 1]);
    kept.held[0]?.end();
    expect(await first).toEqual([200]);
    await rewrite(gateway, {
      upstreams: { kept: { ...upstreams.kept, response_timeout_ms: 20_000 }, moved: { urls: [after.url] } },
    });
    expect(await takeOver(gateway)).toBe('applied');
    expect(await get(system, 'moved')).toEqual([200]);
    expect(after.seen).toHaveLength(1);
    const second = get(system, 'kept');
    await expect.poll(() => kept.held.length).toBe(2);
    kept.held[1]?.end();
    expect(await second).toEqual([200]);
    expect(kept.connections()).toBe(1);
    before.held[0]?.end();
    expect(await inProgress).toEqual([200]);
  });

  it('lets a request whose body still arrives end on the backend that it was sent to', async () => {
    const [before, after] = [await openBackend(), await openBackend()];
    const system = await startWithBackends({ moved: { urls: [before.url] } });
    const { gateway, key } = system;
    const socket = connect(Number(new URL(gateway.public).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.on('data', (bytes) => {
      received += bytes;
    });
    socket.write(`POST /moved/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 4\r\n\r\nab`);
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    await rewrite(gateway, { upstreams: { moved: { urls: [after.url] } } });
    expect(await takeOver(gateway)).toBe('applied');
    socket.write('cd');
    await expect.poll(() => received).toMatch(/^HTTP\/1\.1 200 /);
    expect([before.seen.length, after.seen.length]).toEqual([1, 0]);
  });

  it('uses the new content of a secret file of one backend', async () => {
    const billing = await openBackend();
    const authorization_file = await temporaryFile('authorization', 'Basic one');
    const settings = { urls: [billing.url], credentials: 'replace', authorization_file };
    const system = await startWithBackends({ billing: settings });
    expect(await get(system, 'billing')).toEqual([200]);
    await writeFile(authorization_file, 'Basic two');
    expect(await takeOver(system.gateway)).toBe('applied');
    expect(await get(system, 'billing')).toEqual([200]);
    expect(billing.seen.map(({ headers }) => headers.authorization)).toEqual(['Basic one', 'Basic two']);
    expect(JSON.stringify(system.gateway.logs)).not.toMatch(/Basic (?:one|two)/);
  });

  it('closes the connections of a backend that it removed', async () => {
    const server = createServer({ keepAliveTimeout: 600_000 }, (_req, res) => res.end()).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const system = await startWithBackends({ old: { urls: [url] } });
    expect(await get(system, 'old')).toEqual([200]);
    const open = () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
    expect(await open()).toBe(1);
    await rewrite(system.gateway, { upstreams: {}, routes: routesTo('default') });
    expect(await takeOver(system.gateway)).toBe('applied');
    await expect.poll(open).toBe(0);
  });
});

it('no request is ever sent to another backend: not as a retry, not after a reset', async () => {
  let resets = 0;
  const server = createServer((req) => {
    resets++;
    req.socket.destroy();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const system = await startWithBackends({ bad: { urls: [url] } });
  expect(await get(system, 'default')).toEqual([200]);
  expect(await get(system, 'bad')).toEqual([502, 'bad_gateway']);
  expect(resets).toBe(2);
  const { gateway, key } = system;
  const post = await fetch(`${gateway.public}/bad/x`, { method: 'POST', body: 'a', headers: bearer(key) });
  expect([post.status, resets]).toEqual([502, 3]);
  expect(system.backend.seen.map((seen) => seen.url)).toEqual(['/default/x']);
});

it('a stop lets the requests of each backend complete', async () => {
  const [one, two] = [await openHeldBackend(), await openHeldBackend()];
  const system = await startWithBackends(
    { one: { urls: [one.url] }, two: { urls: [two.url] } },
    { shutdown: { drain_ms: 60_000 } },
  );
  const answers = [get(system, 'one'), get(system, 'two')];
  await expect.poll(() => [one.held.length, two.held.length]).toEqual([1, 1]);
  const closing = system.gateway.close();
  one.held[0]?.end();
  two.held[0]?.end();
  expect(await Promise.all(answers)).toEqual([[200], [200]]);
  await closing;
});

describe('assertions', () => {
  it('name their backend as audience: one for another is not accepted', async () => {
    const [billing, search] = [await openBackend(), await openBackend()];
    const signing_key_file = await temporaryFile('signing.pem', createPemPair().privatePem);
    const system = await startWithBackends(
      { billing: { urls: [billing.url], audience: 'https://billing.example' }, search: { urls: [search.url] } },
      { identity: { assertion: { signing_key_file } } },
    );
    // Twice: the second one comes from memory.
    for (const name of ['billing', 'search', 'billing', 'search']) expect(await get(system, name)).toEqual([200]);
    const keys = createRemoteJWKSet(new URL(`${system.gateway.ops}/.well-known/jwks.json`));
    const verify = (seen: (typeof billing.seen)[number] | undefined, audience: string) =>
      jwtVerify(String(seen?.headers['x-tollgate-assertion']), keys, { issuer: 'tollgate', audience });
    for (const turn of [0, 1]) {
      const toBilling = await verify(billing.seen[turn], 'https://billing.example');
      expect(toBilling.payload).toMatchObject({ sub: 'acme', aud: 'https://billing.example' });
      expect((await verify(search.seen[turn], search.url)).payload.aud).toBe(search.url);
      await expect(verify(search.seen[turn], 'https://billing.example')).rejects.toThrow(/"aud"/);
      await expect(verify(billing.seen[turn], search.url)).rejects.toThrow(/"aud"/);
    }
  });
});

it('the routes may name all backends: then there is no default', async () => {
  const only = await openBackend();
  const system = await startWithBackends({ only: { urls: [only.url] } });
  const { upstream: _, ...sections } = system.gateway.sections;
  await rewrite({ ...system.gateway, sections }, { routes: routesTo('only') });
  expect(await takeOver(system.gateway)).toBe('applied');
  expect(await get(system, 'only')).toEqual([200]);
  expect((await callAdmin(system.gateway, '/status')).body.upstreams).toHaveLength(1);
});
