/** A gateway in front of the reader's own backend: what it prints works, and nothing is left of it. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../bench/free-port.ts';
import { loadConfig } from '../../src/config/load.ts';
import { postLogin } from '../console/support.ts';
import { codeOf, exchange } from '../portal/support.ts';
import { bearer } from '../support/admin.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { startTry } from '../support/process.ts';
import { run, startServer, temporaryFile, tollgateHere } from './support.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const PETSTORE = `openapi: 3.0.4
info: { title: Pets, version: "1" }
servers: [{ url: /api/v3 }]
security: [{ key: [] }]
paths:
  /pets/{petId}: { get: {} }
  /pets: { post: {}, get: {} }
`;

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-cli-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Runs the printed command with the key, and returns the status line. */
async function runPrintedCurl(output: string): Promise<string> {
  const [line = ''] = /curl -i.* -H .*/.exec(output) ?? [];
  const { stdout } = await run('bash', ['-c', `${line} --no-progress-meter`]);
  return stdout.split('\r\n')[0] ?? '';
}

it('serves the user’s own backend with what it prints, and is gone within a second of Ctrl-C', async () => {
  const hangs = Promise.withResolvers<void>();
  const url = await startServer((request, response) => {
    if (request.url === '/base/hang') hangs.resolve();
    else response.end(`${request.method} ${request.url} ${request.headers['x-tollgate-customer']}`);
  });
  const folder = await emptyFolder();
  const args = [`${url}/base/`, '--port', '0', '--requests-per-hour', '4', '--key-header', 'X-API-Key'];
  const gateway = await startTry(args, { TMPDIR: folder });
  const { public: origin, portal = '', admin = '' } = gateway;
  const output = gateway.output();

  expect(output).toContain(`in front of ${url}/base.\n`);
  expect(output).not.toContain('cannot be reached');
  expect(await runPrintedCurl(output)).toBe('HTTP/1.1 200 OK');
  const [key = ''] = /tg_\w+/.exec(output) ?? [];
  const headers = { 'X-API-Key': key };
  const send = (path: string, method: string) => fetch(origin + path, { method, headers });
  for (const method of ['OPTIONS', 'DELETE']) {
    expect(await (await send('/a/b?c=d', method)).text()).toBe(`${method} /base/a/b?c=d demo`);
  }
  expect(await (await send('/_tollgate/usage', 'GET')).json()).toMatchObject({ limit: 4, used: 3 });
  expect((await fetch(origin)).status).toBe(401);

  const [, token = ''] = /admin token: (\S+)\n/.exec(output) ?? [];
  expect(output).toContain(`Console: ${admin}/console\n`);
  expect((await postLogin(admin, token)).body).toMatchObject({ scope: 'write' });
  const [link = ''] = /http:\S+\/portal#code=\S+/.exec(output) ?? [];
  expect((await exchange(portal, codeOf(new URL(link)))).body).toMatchObject({ customer: 'demo' });
  expect(await (await fetch(`${portal}/portal/settings`)).json()).toMatchObject({ api_url: origin });
  const config = await fetch(`${admin}/admin/v1/config`, { headers: bearer(token) });
  expect(await config.json()).toMatchObject({ auth: { key_headers: ['X-API-Key'] } });

  const aborted = send('/hang', 'GET').then(
    () => 'a response',
    () => 'no response',
  );
  await hangs.promise;
  expect((await send('/', 'GET')).status).toBe(429);
  expect(await readdir(folder)).toHaveLength(1);
  const startedMs = awakeMs();
  gateway.signal('SIGINT');
  expect((await gateway.finished).status).toBe(0);
  expect(awakeMs() - startedMs).toBeLessThan(5000);
  expect(await aborted).toBe('no response');
  expect(await readdir(folder)).toEqual([]);
});

it('starts without its backend, says so, and forwards what the OpenAPI file describes', async () => {
  const backendPort = String(await freePort());
  const backend = `http://127.0.0.1:${backendPort}`;
  const folder = await emptyFolder();
  const args = [backend, '--port', backendPort, '--openapi', await temporaryFile('pets.yaml', PETSTORE)];
  const gateway = await startTry(args, { TMPDIR: folder });
  const output = gateway.output();
  expect(output).toMatch(/cannot be reached now \(connect ECONNREFUSED .*requests get 503 upstream_unavailable/);
  expect(output).toContain(`'${gateway.public}/api/v3/pets'\n`);
  // The port of the backend stays free for it.
  expect(gateway.public).not.toBe(backend);
  expect(await runPrintedCurl(output)).toBe('HTTP/1.1 503 Service Unavailable');
  expect((await fetch(`${gateway.public}/other`)).status).toBe(404);
  gateway.signal('SIGTERM');
  expect((await gateway.finished).status).toBe(0);
  expect(await readdir(folder)).toEqual([]);
});

it('takes the next free ports, also beside one that starts at the same time', async () => {
  const url = await startServer((_, response) => response.end('ok'));
  const port = new URL(url).port;
  const both = await Promise.all([startTry([url, '--port', port]), startTry([url, '--port', port])]);
  const ports = both.flatMap(({ public: a, ops, admin = '', portal = '' }) => [a, ops, admin, portal]);
  expect(new Set([...ports, url]).size).toBe(9);
  for (const gateway of both) {
    expect(gateway.output()).toMatch(new RegExp(`^  Ports in use, .*: ${port}\\b`, 'm'));
    expect(await runPrintedCurl(gateway.output())).toBe('HTTP/1.1 200 OK');
  }
});

it.each([
  'http://user:secret@localhost',
  'http://localhost/?secret',
  'http://localhost/#secret',
  'ftp://secret',
  'localhost:3000',
  'unix:/run/backend.sock',
  "http://a'b",
  'http://localhost/a//b',
])('refuses %s as the URL of a backend, and does not repeat it', async (url) => {
  const { status, stderr } = await tollgateHere('try', url);
  expect(status).toBe(2);
  expect(stderr).toMatch(/^tollgate: the URL of the backend must be http\(s\):/);
  expect(stderr).not.toContain('secret');
});

it.each([
  [2, 'give the URL of your backend', []],
  [2, "cannot be used with option '--port <number>'", ['http://localhost', '--port', '1', '--save', '/nowhere']],
  [2, 'such as X-API-Key', ['http://localhost', '--key-header', 'Cookie']],
  [2, 'from 0 to 65535', ['http://localhost', '--port', '65536']],
  [1, 'nowhere.yaml: cannot be read', ['http://localhost', '--openapi', '/nowhere.yaml']],
])('ends with status %i and %j for %j', async (expected, message, args) => {
  const { status, stderr } = await tollgateHere('try', ...args);
  expect(status).toBe(expected);
  expect(stderr).toContain(message);
});

it.each([
  ['http://localhost:3000', [], '/', 'http://host.docker.internal:3000', 2],
  [
    'https://api.example.com/v2/',
    ['--openapi', 'PETSTORE', '--key-header', 'X-API-Key', '--requests-per-hour', '50'],
    '/pets',
    'https://api.example.com/v2',
    2,
  ],
])('--save writes what runs in front of %s', async (url, options, target, upstreamUrl, routes) => {
  const folder = join(await emptyFolder(), 'new');
  const petstore = await temporaryFile('pets.yaml', PETSTORE);
  const save = () =>
    tollgateHere('try', url, '--save', folder, ...options.map((each) => (each === 'PETSTORE' ? petstore : each)));
  expect(await save()).toMatchObject({ status: 0, stderr: '' });
  expect((await readdir(folder)).sort()).toEqual(['README.md', 'compose.yaml', 'gateway.yaml']);

  const env = { UPSTREAM_URL: upstreamUrl, REDIS_URL: 'redis://redis', TOLLGATE_ADMIN_TOKEN: 'a-token-of-the-tests' };
  const config = await loadConfig(join(folder, 'gateway.yaml'), env);
  expect(config.warnings).toEqual([]);
  expect(config.routes).toHaveLength(routes);
  expect(config.routes.map(({ path }) => path)).toContain(target);
  const isTuned = options.length > 0;
  expect(config.plans.get('starter')?.requestsPerHour).toBe(isTuned ? 50 : 1000);
  expect(config.auth.keyHeaders).toEqual([isTuned ? 'X-API-Key' : 'Authorization']);
  const text = await readFile(join(folder, 'gateway.yaml'), 'utf8');
  for (const variable of ['UPSTREAM_URL', 'REDIS_URL']) expect(text).toContain(`\${${variable}}`);
  expect(text).not.toContain('yaml-language-server');

  const readme = await readFile(join(folder, 'README.md'), 'utf8');
  expect(readme).toContain(`UPSTREAM_URL=${upstreamUrl}"`);
  expect(readme).toContain(
    `-H '${isTuned ? 'X-API-Key: ' : 'Authorization: Bearer '}tg_…' 'http://localhost:8080${target}'`,
  );
  const [, commands = ''] = /^```sh\n(.*?)^```$/ms.exec(readme) ?? [];
  expect(commands.trim().split('\n').length).toBeLessThanOrEqual(6);

  expect(await save()).toMatchObject({ status: 2, stderr: expect.stringContaining('is not empty') });
  const onFile = tollgateHere('try', `http://localhost:3000`, '--save', join(folder, 'README.md'));
  expect(await onFile).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('cannot be a new folder: it is a file'),
  });
});

it('the saved services are those of deploy/compose.yaml', async () => {
  const read = async (file: string) => parse(await readFile(join(REPOSITORY, file), 'utf8'), { merge: true });
  const saved = await read('config/compose-template/compose.yaml');
  const whole = await read('deploy/compose.yaml');
  const inEnv = (service: object) => JSON.parse(JSON.stringify(service).replaceAll('deploy/.env', '.env'));
  const { networks: _, ...redis } = inEnv(whole.services.redis);
  expect(saved.services.redis).toEqual(redis);
  const { image, command, read_only, cap_drop, security_opt, stop_grace_period } = whole.services['gateway-1'];
  expect(saved.services.gateway).toMatchObject({
    image,
    command,
    read_only,
    cap_drop,
    security_opt,
    stop_grace_period,
  });
});
