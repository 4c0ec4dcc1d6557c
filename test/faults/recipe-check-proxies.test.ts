/** Each block of docs/check.md whose program is installed: a proxy that asks the check listener, in front of a backend. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { CHECK_TOKEN, type CheckSystem, createLimitedKey, startCheckSystem, usedOf } from '../check/support.ts';
import { temporaryFolder } from '../docs/recipes/support.ts';
import { bearer } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { createCertificate } from '../support/certificates.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { eventually } from '../support/eventually.ts';

const PAGE = readFileSync(new URL('../../docs/check.md', import.meta.url), 'utf8');

/** The first block of a language, with the addresses of the test. */
function blockOf(language: string, { gateway }: CheckSystem, backendUrl: string): string {
  const block = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(PAGE)?.[1];
  if (block === undefined) throw new Error(`docs/check.md has no block of ${language}`);
  return block
    .replaceAll('127.0.0.1:8084', new URL(gateway.check).host)
    .replaceAll('127.0.0.1:3000', new URL(backendUrl).host)
    .replaceAll('the-check-token', CHECK_TOKEN);
}

interface Started {
  readonly port: number;
  readonly isTls: boolean;
}

type Start = (system: CheckSystem, backendUrl: string) => Promise<Started>;

async function run(program: string, args: readonly string[], folder: string, started: Started): Promise<Started> {
  const child = spawn(program, args, { cwd: folder, env: { ...CHILD_ENVIRONMENT, HOME: folder }, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  await eventually(`${program} listens`, async () => {
    if (child.exitCode !== null) throw new Error(output);
    const socket = connect(started.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    return true;
  });
  return started;
}

const startNginx: Start = async (system, backendUrl) => {
  const [folder, port] = [temporaryFolder(), await freePort()];
  const { cert, key } = createCertificate();
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
  const block = blockOf('nginx', system, backendUrl)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replaceAll('/etc/nginx/tls', folder);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr; events {}\n` +
      `http { access_log off; ${paths.join(' ')}\n${block}\n}`,
  );
  return run(inject('nginx'), ['-p', folder, '-c', join(folder, 'nginx.conf')], folder, { port, isTls: true });
};

const startHaproxy: Start = async (system, backendUrl) => {
  const [folder, port] = [temporaryFolder(), await freePort()];
  const { cert, key } = createCertificate();
  writeFileSync(join(folder, 'cert.pem'), cert + key);
  writeFileSync(join(folder, 'tollgate.lua'), blockOf('lua', system, backendUrl));
  const block = blockOf('haproxy', system, backendUrl)
    .replaceAll('/etc/haproxy', folder)
    .replace('bind :443', `bind 127.0.0.1:${port}`);
  writeFileSync(join(folder, 'haproxy.cfg'), block);
  return run(inject('haproxy'), ['-db', '-f', 'haproxy.cfg'], folder, { port, isTls: true });
};

const startCaddy: Start = async (system, backendUrl) => {
  const [folder, port] = [temporaryFolder(), await freePort()];
  const block = blockOf('caddyfile', system, backendUrl).replace(/^:443 /, `http://127.0.0.1:${port} `);
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n\tstorage file_system ${folder}\n}\n${block}`);
  return run(inject('caddy'), ['run'], folder, { port, isTls: false });
};

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Sends a target byte for byte. A status of 0: the connection was closed without a response. */
async function send(
  { port, isTls }: Started,
  target: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<Answer> {
  const socket = isTls
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connect(port, '127.0.0.1');
  const lines = Object.entries({ Host: '127.0.0.1', Connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.write(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const received = await text(socket).catch(() => '');
  const [head = '', ...rest] = received.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1] ?? 0), head, body: rest.join('\r\n\r\n') };
}

/** Spellings that some proxy or backend takes for `/v1/orders/1`, which the key may not read. */
const CONFUSING = [
  '/v1/orders/1',
  '/v1/orders',
  '/v1/open/../orders/1',
  '/v1/open/1/../../orders/1',
  '/v1/open/%2e%2e/orders/1',
  '/v1/open/%2E%2E/orders/1',
  '/v1/open/.%2e/orders/1',
  '/v1/open/%2e./orders/1',
  '/v1/./orders/1',
  '/./v1/orders/1',
  '/../v1/orders/1',
  '/v1/%2e/orders/1',
  '//v1/orders/1',
  '/v1//orders/1',
  '/v1/orders//1',
  '/v1/open//../orders/1',
  '/v1/open/..//orders/1',
  '/v1/open/..;/orders/1',
  '/v1/open;/../orders/1',
  '/v1/open/1;/../../orders/1',
  '/v1/orders;x=1/1',
  '/v1/orders;/1',
  '/v1/%6frders/1',
  '/v1/%6Frders/1',
  '/%76%31/orders/1',
  '/v1%2forders/1',
  '/v1%2Forders%2F1',
  '/v1/open%2f..%2forders/1',
  '/v1/open/..%2forders/1',
  '/v1/open/%2e%2e%2forders%2f1',
  '/v1/open/..%5corders/1',
  '/v1/open\\..\\orders/1',
  '/v1/open/..\\orders/1',
  '/v1/open/%252e%252e/orders/1',
  '/v1/%256frders/1',
  '/V1/orders/1',
  '/v1/Orders/1',
  '/V1/ORDERS/1',
  '/v1/orders/1#/../../open',
  '/v1/open#/../orders/1',
  '/v1/open/1?/../../orders/1#',
  '/v1/open/%00/../orders/1',
  '/v1/open/../orders/1?x=/v1/open',
  '/v1/orders/',
  '/v1/orders/.',
  '/v1/orders/1/.',
  '/v1/orders/1/',
  '/v1/open/..%c0%aforders/1',
  '/v1/open/%c0%ae%c0%ae/orders/1',
  '/v1/open/%u002e%u002e/orders/1',
  'http://127.0.0.1/v1/orders/1',
  'http://127.0.0.1/v1/open/../orders/1',
  'https://other/v1/orders/1',
  '*',
  'v1/orders/1',
];

/** A path as the most tolerant backend reads it. */
function tolerant(url: string): string {
  let path = url.split(/[?#]/, 1)[0] ?? '';
  for (let i = 0; i < 3; i++)
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  const segments: string[] = [];
  for (const segment of path.replaceAll('\\', '/').toLowerCase().split('/')) {
    const [bare = ''] = segment.split(';', 1);
    if (bare === '..') segments.pop();
    else if (bare !== '' && bare !== '.') segments.push(bare);
  }
  return `/${segments.join('/')}`;
}

const PROXIES: readonly [name: 'nginx' | 'haproxy' | 'caddy', start: Start][] = [
  ['nginx', startNginx],
  ['haproxy', startHaproxy],
  ['caddy', startCaddy],
];

async function startAll(start: Start, limit = 1000): Promise<CheckSystem & { backend: Backend; proxy: Started }> {
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const system = await startCheckSystem({ limit });
  return { ...system, backend, proxy: await start(system, backend.url) };
}

describe.each(PROXIES.filter(([name]) => inject(name) !== ''))('%s', (_name, start) => {
  test('a yes reaches the backend with the identity of the gateway, and without the key', async () => {
    const { gateway, backend, proxy, key, keyId } = await startAll(start);
    const answer = await send(proxy, '/v1/open/1?q=%20x', bearer(key));
    expect(answer.status, answer.body).toBe(200);
    expect(backend.seen).toMatchObject([{ method: 'GET', url: '/v1/open/1?q=%20x' }]);
    expect(backend.seen[0]?.headers).toMatchObject({
      'x-tollgate-customer': 'acme',
      'x-tollgate-plan': 'enterprise',
      'x-tollgate-key-id': keyId,
    });
    expect(JSON.stringify(backend.seen)).not.toContain(key);
    expect(JSON.stringify(backend.seen)).not.toContain(CHECK_TOKEN);
    expect(await usedOf(gateway)).toBe(1);
  });

  test('headers of the client name neither another request nor another customer', async () => {
    const { backend, proxy, gateway } = await startAll(start);
    const limited = await createLimitedKey(gateway);
    const naming = {
      'X-Original-URI': '/v1/open',
      'X-Original-URL': 'http://127.0.0.1/v1/open',
      'X-Original-Method': 'GET',
      'X-Forwarded-Uri': '/v1/open',
      'X-Forwarded-Method': 'GET',
    };
    for (const [header, value] of Object.entries(naming)) {
      const { status } = await send(proxy, '/v1/orders/1', { ...bearer(limited), [header]: value });
      expect([header, status]).toEqual([header, 403]);
    }
    expect(backend.seen).toEqual([]);
    const identity = ['X-Tollgate-Customer', 'X-Tollgate-Assertion', 'X_Tollgate_Customer', 'x-tollgate_plan'];
    for (const header of [...identity, 'X-Tollgate-Check-Token']) {
      await send(proxy, '/health', { [header]: 'evil' });
    }
    expect(JSON.stringify(backend.seen)).not.toContain('evil');
  });

  test('a client cannot drop its identity, or the key that is checked, by naming their headers in Connection', async () => {
    const { backend, proxy, key, keyId } = await startAll(start);
    for (const names of ['X-Tollgate-Customer', 'close, x-tollgate-key-id', 'close\r\nConnection: X-TOLLGATE-PLAN']) {
      await send(proxy, '/v1/open', { ...bearer(key), Connection: `${names}, close` });
    }
    await send(proxy, '/v1/open', { ...bearer(key), Connection: 'Authorization, close' });
    const expected = { 'x-tollgate-customer': 'acme', 'x-tollgate-plan': 'enterprise', 'x-tollgate-key-id': keyId };
    for (const { headers } of backend.seen) expect(headers).toMatchObject(expected);
    expect(JSON.stringify(backend.seen)).not.toContain(key);
  });

  test('the client gets the refusal of the gateway', async () => {
    const { backend, proxy, key } = await startAll(start, 1);
    const missing = await send(proxy, '/v1/open', {});
    expect(missing.status).toBe(401);
    expect(missing.head).toMatch(/^www-authenticate: Bearer realm="api"\r?$/im);
    expect(missing.body).toContain('"code":"missing_key"');
    expect((await send(proxy, '/v1/open', bearer(key), 'POST')).status).toBe(200);
    const used = await send(proxy, '/v1/open', bearer(key));
    expect(used.status).toBe(429);
    expect(used.head).toMatch(/^retry-after: \d+\r?$/im);
    expect(used.head).toMatch(/^content-type: application\/problem\+json\r?$/im);
    expect(used.body).toContain('"code":"quota_exceeded"');
    expect(backend.seen).toHaveLength(1);
    expect((await send(proxy, '/v1/open', bearer(key), 'POST')).status).toBe(429);
  });

  test(`none of ${CONFUSING.length} confusing paths reaches a route whose scope the key lacks`, async () => {
    const { gateway, backend, proxy } = await startAll(start);
    const limited = await createLimitedKey(gateway);
    for (const target of CONFUSING) await send(proxy, target, bearer(limited));
    expect(backend.seen.filter(({ url }) => tolerant(url).startsWith('/v1/orders'))).toEqual([]);
    // The proxy works: a path that is not confusing gets through.
    expect((await send(proxy, '/v1/open/1', bearer(limited))).status).toBe(200);
  });

  test('without the gateway, nothing reaches the backend', async () => {
    const { gateway, backend, proxy, key } = await startAll(start);
    await gateway.close();
    expect((await send(proxy, '/v1/open', bearer(key))).status).toBeGreaterThanOrEqual(500);
    expect(backend.seen).toEqual([]);
  });
});

describe.runIf(inject('nginx') !== '')('nginx in front', () => {
  test('requests over HTTP/2 are decided one by one', async () => {
    const { gateway, backend, proxy, key } = await startAll(startNginx, 5);
    const session = connectHttp2(`https://127.0.0.1:${proxy.port}`, { rejectUnauthorized: false });
    onTestFinished(() => session.destroy());
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const stream = session.request({ ':path': '/v1/open', authorization: `Bearer ${key}` });
        const [headers] = await once(stream, 'response');
        stream.resume();
        await once(stream, 'end');
        return headers[':status'];
      }),
    );
    expect(statuses.toSorted()).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    expect(backend.seen).toHaveLength(5);
    expect(await usedOf(gateway)).toBe(5);
  });

  test('a WebSocket is one check, and is refused without a key', async () => {
    const sockets = createServer();
    sockets.on('upgrade', (req, socket) => {
      const who = req.headers['x-tollgate-customer'];
      socket.end(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello ${who}`);
    });
    sockets.listen(0, '127.0.0.1');
    await once(sockets, 'listening');
    onTestFinished(() => void sockets.close());
    const system = await startCheckSystem();
    const proxy = await startNginx(system, `http://127.0.0.1:${(sockets.address() as AddressInfo).port}`);
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' };
    const accepted = await send(proxy, '/v1/open', { ...bearer(system.key), ...upgrade });
    expect([accepted.status, accepted.body]).toEqual([101, 'hello acme']);
    expect(await usedOf(system.gateway)).toBe(1);
    expect((await send(proxy, '/v1/open', { ...upgrade, Connection: 'close, Upgrade' })).status).toBe(401);
  });

  test('the usage of a key has a path of its own, free of charge', async () => {
    const { proxy, key, backend } = await startAll(startNginx, 7);
    const { status, body } = await send(proxy, '/usage', bearer(key));
    expect([status, body]).toEqual([200, expect.stringContaining('"limit":7,"used":0')]);
    expect(backend.seen).toEqual([]);
  });
});
