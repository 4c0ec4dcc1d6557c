/**
 * check-config --connect: whether a gateway could use its store and its upstreams. It is run beside a gateway that works, so
 * it must write nothing, end in time, and print no password.
 */
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { systemClock } from '../../src/base/clock.ts';
import { tryConnections } from '../../src/process/try-connections.ts';
import { tryStore } from '../../src/store/open/try-store.ts';
import { load } from '../config/support.ts';
import { startBackend } from '../support/backend.ts';
import { createCertificate } from '../support/certificates.ts';
import { runProgram } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { startHttpUpstream } from '../upstream/support/upstreams.ts';
import { temporaryFile, tollgateHere } from './support.ts';

const GOOD_SERVER =
  /^Redis \d+\.\d+\.\d+, maxmemory-policy noeviction, clock \d+ ms (?:behind|ahead), all commands permitted$/;
const settings = { keyPrefix: 'tollgate', timeoutMs: 100 };

async function connectionsOf(storeUrl: string, upstream: string) {
  return tryConnections(await load(`store: { url: ${JSON.stringify(storeUrl)} }\nupstream: { ${upstream} }\n`));
}

/** One that accepts connections and says nothing. */
async function startSilentServer(): Promise<number> {
  const server = createServer((socket) => void socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

describe('a single Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    return () => redis.stop();
  });

  test('the command prints a line each, exits with 0, and writes nothing', async () => {
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const health = 'health_check: { path: /healthz, interval_ms: 2000 }';
    const file = await temporaryFile(
      'gateway.yaml',
      `store: { url: "${redis.url}" }\nupstream: { urls: ["${backend.url}/base"], ${health} }\n`,
    );
    const { status, stdout, stderr } = await runProgram({ args: ['check-config', file, '--connect'] });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [valid, store, upstream, ...rest] = stdout.trimEnd().split('\n');
    expect(valid).toMatch(/is valid/);
    expect(store?.split(': ok: ')).toEqual([`store ${redis.url}`, expect.stringMatching(GOOD_SERVER)]);
    expect(upstream).toMatch(new RegExp(`^upstream ${backend.url}/base: ok: health check /healthz passed in \\d+ ms$`));
    expect(rest).toEqual([]);
    expect(backend.seen.map(({ url }) => url)).toEqual(['/healthz']);
    expect(String(await redis.command('INFO', 'persistence'))).toMatch(/^rdb_changes_since_last_save:0\r$/m);
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  test('what is wrong is an error with its reason, and the exit status is 1; the password is not printed', async () => {
    const port = await freePort();
    const file = await temporaryFile(
      'gateway.yaml',
      `store: { url: "redis://user:hunter2hunter2@127.0.0.1:${redis.port}" }\nupstream: { urls: ["http://127.0.0.1:${port}"] }\n`,
    );
    const { status, stdout, stderr } = await tollgateHere('check-config', file, '--connect');
    expect(status).toBe(1);
    const [, store, upstream] = stdout.split('\n');
    expect(store).toMatch(new RegExp(`^store redis://127.0.0.1:${redis.port}: error: .*WRONGPASS`));
    expect(upstream).toBe(`upstream http://127.0.0.1:${port}: error: connect ECONNREFUSED 127.0.0.1:${port}`);
    expect(stdout + stderr).not.toContain('hunter2');
  });

  test('each upstream of each backend is tried, and a line names the backend and its setting', async () => {
    const [backend, port] = [await startBackend(), await freePort()];
    onTestFinished(() => backend.close());
    const tls = createTlsServer(createCertificate()).listen(0, '127.0.0.1');
    onTestFinished(() => void tls.close());
    await new Promise((resolve) => tls.once('listening', resolve));
    const tlsPort = (tls.address() as AddressInfo).port;
    const upstreams = `upstreams: { billing: { urls: ["${backend.url}", "http://127.0.0.1:${port}"] }, search: { urls: ["https://127.0.0.1:${tlsPort}"] } }`;
    const routes =
      'routes: [{ path: /a, methods: [GET], upstream: billing }, { path: /b, methods: [GET], upstream: search }]';
    const found = await tryConnections(await load(`store: { url: "${redis.url}" }\n${upstreams}\n${routes}\n`));
    expect(found.slice(1)).toEqual([
      {
        subject: `upstream ${backend.url} of backend billing`,
        outcome: 'ok',
        text: expect.stringMatching(/^connected/),
      },
      { subject: `upstream http://127.0.0.1:${port} of backend billing`, outcome: 'error', text: expect.any(String) },
      {
        subject: `upstream https://127.0.0.1:${tlsPort} of backend search`,
        outcome: 'error',
        text: expect.stringContaining('in upstreams.search.tls.ca_file'),
      },
    ]);
  });

  test('each command that is not permitted is named, though nothing is written', async () => {
    await redis.command('ACL', 'SETUSER', 'gate', 'on', '>secret', '~tollgate:*', '&*', '+@all');
    const url = `redis://gate:secret@127.0.0.1:${redis.port}`;
    expect(await tryStore({ ...settings, url })).toEqual([{ outcome: 'ok', text: expect.stringMatching(GOOD_SERVER) }]);
    const missing = ['setnx', 'sadd', 'hincrby', 'zscan', 'xadd', 'del'];
    for (const command of missing) {
      await redis.command('ACL', 'SETUSER', 'gate', `-${command}`);
      const findings = await tryStore({ ...settings, url });
      expect(findings.map(({ outcome }) => outcome)).toEqual(['ok', 'error']);
      expect(findings[1]?.text).toContain(`may not run ${command.toUpperCase()})`);
      await redis.command('ACL', 'SETUSER', 'gate', `+${command}`);
    }
    expect(String(await redis.command('INFO', 'persistence'))).toMatch(/^rdb_changes_since_last_save:0\r$/m);
  });

  test('an eviction policy and a clock that differs are warnings, which --strict treats as errors', async () => {
    const evicting = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    onTestFinished(() => evicting.stop());
    const ahead = { ...systemClock, nowMs: () => systemClock.nowMs() + 60_000 };
    const findings = await tryStore({ ...settings, url: evicting.url }, ahead);
    expect(findings).toMatchObject([
      { outcome: 'ok', text: expect.stringContaining('maxmemory-policy allkeys-lru') },
      { outcome: 'warning', text: expect.stringContaining('has maxmemory-policy allkeys-lru') },
      {
        outcome: 'warning',
        text: expect.stringMatching(/^compared with this machine, its clock is (?:59|60)\d{3} ms behind:/),
      },
    ]);
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const yaml = `store: { url: "${evicting.url}" }\nupstream: { urls: ["${backend.url}"] }\n`;
    const file = await temporaryFile('gateway.yaml', yaml);
    const check = (...options: string[]) => tollgateHere('check-config', file, '--connect', ...options);
    const [lenient, strict] = [await check(), await check('--strict')];
    expect([lenient.status, strict.status]).toEqual([0, 1]);
    expect(strict.stdout).toMatch(new RegExp(`^store ${evicting.url}: warning: Redis has maxmemory-policy`, 'm'));
  });
});

test('scopes of valid keys that no route has are a warning, and with --strict a failure', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const write = (digit: string, ...fields: string[]) =>
    redis.command('HSET', `tollgate:key:${digit.repeat(64)}`, 'id', `k${digit}`, 'customer', 'acme', ...fields);
  await redis.command('HSET', 'tollgate:customer:{acme}', 'plan', 'starter');
  await write('1', 'scopes', 'read typo');
  await write('2', 'scopes', 'typo read other');
  await write('3', 'scopes', 'revoked', 'revoked_at', '2020-01-01T00:00:00Z');
  await write('4', 'scopes', 'read');
  await write('5');
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const yaml = `store: { url: "${redis.url}" }\nupstream: { urls: ["${backend.url}"] }\n`;
  const route = (scope: string) =>
    `routes: [{ path: /a, methods: [GET], scope: ${scope} }]\naliases: {}\nusage_path: null\n`;
  const file = await temporaryFile('gateway.yaml', yaml + route('read'));
  const check = (...options: string[]) => tollgateHere('check-config', file, '--connect', ...options);
  const [lenient, strict] = [await check(), await check('--strict')];
  expect([lenient.status, strict.status]).toEqual([0, 1]);
  expect(strict.stdout).toMatch(
    /^scopes of the keys: warning: keys with scopes that no route has: 2 \((?:typo, other|other, typo)\)$/m,
  );
});

test('what a server responds cannot control the terminal', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => socket.write('-ERR \u001b[31mred\r\n'));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const yaml = `store: { url: "redis://127.0.0.1:${port}" }\nupstream: { urls: ["http://127.0.0.1:${port}"] }\n`;
  const file = await temporaryFile('gateway.yaml', yaml);
  const { status, stdout } = await tollgateHere('check-config', '--connect', file);
  expect(status).toBe(1);
  expect(stdout).toContain('\\u{1b}[31mred');
  expect(stdout).not.toContain('\u001b');
});

test('servers that accept connections and stay silent are errors after a bounded time', async () => {
  const port = await startSilentServer();
  const startedMs = performance.now();
  const checks = await connectionsOf(
    `redis://127.0.0.1:${port}`,
    `urls: ["http://127.0.0.1:${port}", "https://127.0.0.1:${port}"], connect_timeout_ms: 600000, health_check: { path: /, interval_ms: 1000 }`,
  );
  expect(checks.map(({ outcome }) => outcome)).toEqual(['error', 'error', 'error']);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
});

test('an upstream is good when its connection, its certificate and its health check are', async () => {
  const certificate = createCertificate();
  const server = createTlsServer({ cert: certificate.cert, key: certificate.key }, (_req, res) => res.end());
  server.on('tlsClientError', () => {}).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const tlsPort = address !== null && typeof address === 'object' ? address.port : 0;
  const ca = await temporaryFile('ca.pem', certificate.cert);
  const sick = await startHttpUpstream((_req, res) => res.writeHead(503).end());
  const store = `sqlite:${join(ca, '..', 'new', 'store.sqlite')}`;

  const https = `urls: ["https://127.0.0.1:${tlsPort}"]`;
  expect(await connectionsOf(store, https)).toMatchObject([
    {
      subject: store.replace('sqlite:', 'store sqlite:'),
      outcome: 'ok',
      text: 'the file does not exist yet, and can be created',
    },
    {
      outcome: 'error',
      text: expect.stringMatching(/certificate.*; name the CA that issued its certificate in upstream\.tls\.ca_file$/),
    },
  ]);
  const [, plain] = await connectionsOf(
    store,
    `urls: ["http://127.0.0.1:${tlsPort}"], health_check: { path: /, interval_ms: 2000 }`,
  );
  expect(plain?.text).toMatch(/; if it uses TLS, write https:\/\/$/);
  const trusted = await connectionsOf(store, `${https}, tls: { ca_file: ${ca} }`);
  expect(trusted[1]).toMatchObject({ outcome: 'ok', text: expect.stringMatching(/^connected in \d+ ms$/) });
  const unhealthy = await connectionsOf(
    store,
    `urls: ["http://127.0.0.1:${sick}"], health_check: { path: /healthz, interval_ms: 2000 }`,
  );
  expect(unhealthy[1]).toMatchObject({ outcome: 'error', text: 'status 503' });
});

test('a store that uses TLS otherwise than the URL says is an error that says what to change', async () => {
  const authority = createCertificate({ name: 'authority.test' });
  const { cert, key } = createCertificate({ name: 'localhost', issuer: authority });
  const secure = await startRedis({ tls: { cert, key, ca: authority.cert }, args: ['--tls-auth-clients', 'no'] });
  onTestFinished(() => secure.stop());
  const plain = await startRedis();
  onTestFinished(() => plain.stop());
  const upstream = `urls: ["http://127.0.0.1:${await freePort()}"]`;
  const storeError = async (url: string) => {
    const [store] = await connectionsOf(url, upstream);
    expect(store?.outcome).toBe('error');
    return store?.text;
  };
  expect(await storeError(`redis://127.0.0.1:${secure.port}`)).toMatch(/; if it uses TLS, write rediss:\/\/$/);
  expect(await storeError(`redis+cluster://127.0.0.1:${secure.port}`)).toMatch(/write rediss\+cluster:\/\/$/);
  expect(await storeError(`rediss://127.0.0.1:${secure.port}`)).toMatch(
    /; name the CA that issued its certificate in store\.tls\.ca_file$/,
  );
  expect(await storeError(`rediss://127.0.0.1:${plain.port}`)).toMatch(/; if it does not use TLS, write redis:\/\/$/);
});

test('a file that is no SQLite database is an error, and stays as it is', async () => {
  const file = await temporaryFile('store.sqlite', 'this is text, not a database');
  expect(await tryStore({ ...settings, url: `sqlite:${file}` })).toEqual([
    { outcome: 'error', text: 'the file is not a SQLite database' },
  ]);
});
