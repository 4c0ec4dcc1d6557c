import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { type Scheduler, systemScheduler } from '../../src/base/clock.ts';
import type { UpstreamStatus } from '../../src/upstream/upstream.ts';
import { call } from './support/caller.ts';
import { fillBacklog } from './support/full-backlog.ts';
import { startGateway } from './support/gateway.ts';
import { HeldTime } from './support/held-time.ts';
import { startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

/** Kept for longer than a busy machine takes for a test. */
const OK = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 2\r\n\r\nok';

/** What the gateway tells of its upstreams, and a promise for the next of it that `isMeant`. */
function noteChanges() {
  const changes: UpstreamStatus[] = [];
  const waiting: { isMeant: (status: UpstreamStatus) => boolean; resolve: () => void }[] = [];
  const observer = {
    retry() {},
    changed(status: UpstreamStatus) {
      changes.push(status);
      for (const { isMeant, resolve } of waiting) if (isMeant(status)) resolve();
    },
  };
  const next = (isMeant: (status: UpstreamStatus) => boolean): Promise<void> =>
    new Promise((resolve) => waiting.push({ isMeant, resolve }));
  return { observer, changes, next };
}

/** One that goes away and comes back on the same port. */
function restartable(port: number) {
  let server: Server | undefined;
  const stop = (): void => {
    server?.closeAllConnections();
    server?.close();
  };
  onTestFinished(stop);
  return {
    stop,
    async start() {
      server = createServer((_req, res) => res.end('ok'));
      await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
    },
  };
}

test.each(['least_loaded', 'round_robin'] as const)('%s: requests are shared out', async (balance) => {
  const upstreams = await Promise.all([0, 1, 2].map(() => startRawUpstream((socket) => socket.write(OK))));
  const [first, ...others] = upstreams.map(({ port }) => port);
  const gateway = await startGateway([first ?? 0, ...others], { balance });
  for (let i = 0; i < 30; i++) await call(gateway.port);
  expect(upstreams.map(({ heads }) => heads.length)).toEqual([10, 10, 10]);
});

test('least_loaded: an upstream that hangs gets no more than its share of the requests in progress', async () => {
  const held: ServerResponse[] = [];
  const hanging = await startHttpUpstream((_req, res) => void held.push(res));
  const quick = await startHttpUpstream((_req, res) => res.end('ok'));
  const gateway = await startGateway([hanging, quick], { balance: 'least_loaded' });
  const answers = Promise.all(Array.from({ length: 20 }, () => call(gateway.port)));
  // The quick one is done with each before the next comes: whatever hangs keeps further ones away.
  for (let i = 0; i < 20; i++) expect((await call(gateway.port)).status).toBe(200);
  expect(held.length).toBeLessThanOrEqual(11);
  for (const res of held) res.end('ok');
  for (const answer of await answers) expect(answer.status).toBe(200);
});

test('each upstream gets its own authority as Host', async () => {
  const upstreams = await Promise.all([0, 1].map(() => startRawUpstream((socket) => socket.write(OK))));
  const [first, second] = upstreams.map(({ port }) => port);
  const gateway = await startGateway([first ?? 0, second ?? 0]);
  for (let i = 0; i < 2; i++) await call(gateway.port);
  expect(upstreams.map(({ heads }) => /Host: .*/.exec(heads[0] ?? '')?.[0])).toEqual([
    `Host: 127.0.0.1:${first}`,
    `Host: 127.0.0.1:${second}`,
  ]);
});

test('an upstream of several that goes down costs no request, is ejected, probed, and returns by itself', async () => {
  const port = await freePort();
  const weak = restartable(port);
  await weak.start();
  const strong = await startHttpUpstream((_req, res) => res.end('ok'));
  const { observer, changes, next } = noteChanges();
  const gateway = await startGateway([port, strong], { observer });
  for (let i = 0; i < 4; i++) expect((await call(gateway.port)).status).toBe(200);

  weak.stop();
  for (let i = 0; i < 20; i++) expect((await call(gateway.port)).status).toBe(200);
  expect(changes).toMatchObject([{ url: `http://127.0.0.1:${port}`, up: false, reason: 'unreachable' }]);
  expect(gateway.backend.status()).toMatchObject([
    { up: false, reason: 'unreachable', fault: expect.stringContaining('ECONNREFUSED') },
    { up: true, reason: undefined, fault: undefined },
  ]);

  const back = next(({ up }) => up);
  await weak.start();
  await back;
  expect(gateway.backend.status().map(({ up }) => up)).toEqual([true, true]);
  for (let i = 0; i < 4; i++) expect((await call(gateway.port)).status).toBe(200);
});

test('with all upstreams down, a request is refused before any connection is tried', async () => {
  const stuck = await fillBacklog();
  const time = new HeldTime();
  const { observer, next } = noteChanges();
  const gateway = await startGateway(stuck, { connectTimeoutMs: 50, observer, scheduler: time });
  const out = next(({ up }) => !up);
  const waiting = [0, 1, 2].map(() => call(gateway.port));
  await out;
  for (const answer of waiting) await answer;
  for (let i = 0; i < 3; i++) await gateway.nextOutcome();
  expect((await call(gateway.port)).content.toString()).toContain('upstream_unavailable none_available');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'none_available', wasSent: false, upstream: undefined });
});

test('a single upstream is back as soon as a probe can connect', async () => {
  const port = await freePort();
  const { observer, next } = noteChanges();
  const gateway = await startGateway(port, { observer });
  for (let i = 0; i < 4; i++) await call(gateway.port);
  expect(gateway.backend.status()).toMatchObject([{ up: false, reason: 'unreachable' }]);
  const back = next(({ up }) => up);
  await restartable(port).start();
  await back;
  expect((await call(gateway.port)).status).toBe(200);
});

test.each<[string, string | undefined]>([
  ['503', 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'],
  ['502', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'],
  ['504', 'HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n'],
  ['nonsense', 'nonsense\r\n\r\n'],
  ['content that breaks off', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort'],
  ['nothing in time', undefined],
])('one of several that responds with %s five times in a row is ejected for a while', async (_, bytes) => {
  let isIll = true;
  const responseTimeoutMs = bytes === undefined ? 1000 : 10_000;
  const ill = await startRawUpstream((socket) => {
    if (!isIll) socket.write(OK);
    else if (bytes?.includes('short')) socket.end(bytes);
    else if (bytes !== undefined) socket.write(bytes);
  });
  const well = await startRawUpstream((socket) => socket.write(OK));
  const time = new HeldTime();
  const { observer, next } = noteChanges();
  const gateway = await startGateway([ill.port, well.port], { observer, scheduler: time, responseTimeoutMs });
  const out = next(({ up }) => !up);
  for (let i = 0; i < 10; i++) await call(gateway.port);
  await out;
  for (let i = 0; i < 10; i++) expect((await call(gateway.port)).status).toBe(200);
  expect(ill.heads).toHaveLength(5);
  expect(gateway.backend.status()).toMatchObject([{ up: false, reason: 'failing' }, { up: true }]);

  isIll = false;
  const back = next(({ up }) => up);
  time.advance(5_000);
  await back;
  for (let i = 0; i < 10; i++) await call(gateway.port);
  expect(ill.heads).toHaveLength(10);
});

test.each([1, 2, 3])(
  'of %i upstreams that all respond with 503 at most half are ejected, and the responses pass',
  async (count) => {
    const upstreams = await Promise.all(
      Array.from({ length: count }, () => startHttpUpstream((_req, res) => res.writeHead(503).end('theirs'))),
    );
    const [first, ...others] = upstreams;
    const gateway = await startGateway([first ?? 0, ...others]);
    for (let i = 0; i < 10 * count; i++) expect((await call(gateway.port)).content.toString()).toContain('theirs');
    expect(gateway.backend.status().filter(({ up }) => !up)).toHaveLength(Math.floor(count / 2));
  },
);

test('404, 500 and 501 are responses, not failures of the upstream', async () => {
  const bad = await startHttpUpstream((req, res) => res.writeHead(Number(req.url?.slice(1))).end());
  const gateway = await startGateway([bad, bad]);
  for (const status of [404, 500, 501]) for (let i = 0; i < 20; i++) await call(gateway.port, `/${status}`);
  expect(gateway.backend.status().map(({ up }) => up)).toEqual([true, true]);
});

test('an upstream ejected as failing is back at once when the others cannot be reached', async () => {
  const port = await freePort();
  const last = restartable(port);
  await last.start();
  const failing = await startHttpUpstream((_req, res) => res.writeHead(503).end());
  const gateway = await startGateway([failing, port], { scheduler: new HeldTime() });
  for (let i = 0; i < 10; i++) await call(gateway.port);
  expect(gateway.backend.status()).toMatchObject([{ up: false, reason: 'failing' }, { up: true }]);
  last.stop();
  for (let i = 0; i < 4; i++) await call(gateway.port);
  expect(gateway.backend.status()).toMatchObject([{ up: true }, { up: false, reason: 'unreachable' }]);
  expect((await call(gateway.port)).status).toBe(503);
});

test('kept connections that their upstream closes do not count as failures', async () => {
  const kept = new Set<Socket>();
  const closing = await startRawUpstream((socket) => {
    if (kept.has(socket)) {
      socket.end();
      return;
    }
    kept.add(socket);
    if (kept.size === 8) for (const each of kept) each.write(OK);
  });
  const other = await startRawUpstream((socket) => socket.write(OK));
  const gateway = await startGateway([closing.port, other.port]);
  await Promise.all(Array.from({ length: 16 }, () => call(gateway.port)));
  expect(kept.size).toBe(8);
  for (let i = 0; i < 14; i++) expect((await call(gateway.port)).status).toBe(200);
  expect(closing.heads).toHaveLength(15);
  expect(gateway.backend.status().map(({ up }) => up)).toEqual([true, true]);
});

/** With deadlines that a busy machine keeps. */
const patientScheduler: Scheduler = {
  after: systemScheduler.after,
  deadline: (ms, action) => systemScheduler.deadline(50 * ms, action),
};

test('three failed health checks eject an upstream, and two successful ones bring it back', async () => {
  let status = 200;
  const checked = await startRawUpstream((socket, head) => {
    const isCheck = head.startsWith('GET /healthz?deep HTTP/1.1\r\n');
    socket.write(isCheck ? `HTTP/1.1 ${status} Some\r\nContent-Length: 0\r\n\r\n` : OK);
  });
  const { observer, next } = noteChanges();
  const gateway = await startGateway(checked.port, {
    observer,
    scheduler: patientScheduler,
    healthCheck: { path: '/healthz?deep', intervalMs: 200 },
  });
  const checks = (): number => checked.heads.filter((head) => head.includes('/healthz')).length;
  expect((await call(gateway.port)).status).toBe(200);

  const out = next(({ up }) => !up);
  status = 500;
  const before = checks();
  await out;
  expect(checks() - before).toBeGreaterThanOrEqual(3);
  expect(gateway.backend.status()).toMatchObject([{ up: false, reason: 'health_check', fault: 'status 500' }]);
  expect((await call(gateway.port)).content.toString()).toContain('upstream_unavailable none_available');

  const back = next(({ up }) => up);
  status = 204;
  const beforeReturn = checks();
  await back;
  expect(checks() - beforeReturn).toBeGreaterThanOrEqual(2);
  expect((await call(gateway.port)).status).toBe(200);
});

test.each<[string, () => Promise<number>, string]>([
  ['that nobody listens for', freePort, 'ECONNREFUSED'],
  ['without an answer', async () => (await startRawUpstream(() => {})).port, 'no response within 200 ms'],
  ['with a broken answer', async () => (await startRawUpstream((socket) => socket.write('x\r\n\r\n'))).port, 'not the'],
  ['whose connection ends', async () => (await startRawUpstream((socket) => socket.end())).port, 'closed'],
])('a health check %s has failed', async (_, start, fault) => {
  const { observer, next } = noteChanges();
  const out = next(({ up }) => !up);
  const scheduler = fault.startsWith('no response') ? systemScheduler : patientScheduler;
  const gateway = await startGateway(await start(), {
    observer,
    scheduler,
    healthCheck: { path: '/', intervalMs: 200 },
  });
  await out;
  expect(gateway.backend.status()[0]?.fault).toContain(fault);
});

test("new connections use a name's new addresses, and kept ones to its old addresses are closed", async () => {
  const seen: string[] = [];
  const held = Promise.withResolvers<ServerResponse>();
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    if (req.url === '/held') {
      held.resolve(res);
      return;
    }
    seen.push(req.socket.localAddress ?? '');
    res.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  let addresses = ['127.0.0.1'];
  let lookups = 0;
  const time = new HeldTime();
  const gateway = await startGateway(0, {
    urls: [new URL(`http://backend.test:${port}`)],
    scheduler: time,
    async lookup() {
      lookups++;
      return addresses.map((address) => ({ address, family: 4 }));
    },
  });
  for (let i = 0; i < 3; i++) await call(gateway.port);
  expect([lookups, seen]).toEqual([1, ['127.0.0.1', '127.0.0.1', '127.0.0.1']]);
  // The one that is held has the only connection: the next makes another one, which serves until its address vanishes.
  const first = ['127.0.0.1', '127.0.0.1', '127.0.0.1'];

  const busy = call(gateway.port, '/held');
  const answer = await held.promise;
  addresses = ['127.0.0.2'];
  for (let round = 0; round < 3; round++) {
    await call(gateway.port);
    time.advance(5_000);
  }
  answer.end('held');
  expect((await busy).content.toString()).toContain('held');
  for (let i = 0; i < 3; i++) await call(gateway.port);
  expect(lookups).toBe(4);
  expect(seen.slice(3)).toEqual([...first, '127.0.0.2', '127.0.0.2', '127.0.0.2']);
});

test('of several addresses of a name, one that refuses connections is skipped', async () => {
  const upstream = await startHttpUpstream((_req, res) => res.end('ok'));
  const gateway = await startGateway(0, {
    urls: [new URL(`http://backend.test:${upstream}`)],
    maxConnections: 1,
    lookup: async () => [
      { address: '127.0.0.3', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ],
  });
  expect((await call(gateway.port)).content.toString()).toContain('ok');
});

test('close stops health checks, probes and lookups', async () => {
  const time = new HeldTime();
  let lookups = 0;
  const gateway = await startGateway(0, {
    urls: [new URL(`http://backend.test:${await freePort()}`)],
    scheduler: time,
    healthCheck: { path: '/', intervalMs: 1_000 },
    async lookup() {
      lookups++;
      return [{ address: '127.0.0.1', family: 4 }];
    },
  });
  for (let i = 0; i < 4; i++) await call(gateway.port);
  expect(gateway.backend.status()).toMatchObject([{ up: false, reason: 'unreachable' }]);
  await gateway.backend.close();
  expect(time.planned).toBe(0);
  const before = lookups;
  time.advance(100_000);
  expect(lookups).toBe(before);
});
