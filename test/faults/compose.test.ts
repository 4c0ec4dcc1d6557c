/**
 * deploy/compose.yaml as processes: the commands, files, variables and health checks of its services, with free ports of
 * this machine instead of containers' names. Grafana is left out.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { freePort } from '../../bench/free-port.ts';
import { DEPLOY, read, type Service, service } from '../deploy/support/compose.ts';
import { REPOSITORY, readCommand } from '../deploy/support/dockerfile.ts';
import { startPrometheus } from '../prometheus/prometheus-server.ts';
import { bearer } from '../support/admin.ts';
import { startRedis } from '../support/redis-server.ts';
import { startLoad } from '../support/steady-load.ts';

const GATEWAYS = ['gateway-1', 'gateway-2'] as const;
const CLIENTS = 6;
const SECRETS = { REDIS_PASSWORD: 'redis-secret', TOLLGATE_ADMIN_TOKEN: 'admin-token-of-the-tests' };
const HEALTHY = { timeout: 60_000, interval: 100 };

/** Replaces `${NAME}`, `${NAME:-default}` and `${NAME:?error}`, as Compose does with deploy/.env. */
function interpolate(value: string): string {
  const env: Readonly<Record<string, string | undefined>> = SECRETS;
  return value.replace(/\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g, (_, name, fallback) => env[name] ?? fallback);
}

/** A service as a process. `at` puts addresses of this machine in place of those of the network. */
function run(settings: Service, command: readonly string[], at: (value: string) => string): ChildProcess {
  const [program = '', ...args] = command.map(interpolate).map(at);
  const own = Object.entries(settings.environment ?? {}).map(([name, value]) => [name, at(interpolate(value))]);
  const child = spawn(program, args, {
    cwd: REPOSITORY,
    env: { PATH: process.env.PATH, ...Object.fromEntries(own) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Waits as `docker compose up --wait` does, until the health check passes. */
async function untilHealthy(check: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
  const [program = '', ...args] = check;
  const options = { env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' } as const;
  await expect.poll(() => spawnSync(program, args, options).status, HEALTHY).toBe(0);
}

const missing = inject('missingForCompose');

test.skipIf(missing.length > 0)(
  'the services of compose.yaml work together, and replacing the gateways one by one under load fails no request',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-compose-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));

    const { command: redisCommand = [], healthcheck: redisCheck } = service('redis');
    const redis = await startRedis({ args: redisCommand.slice(1).map(interpolate), password: SECRETS.REDIS_PASSWORD });
    onTestFinished(() => redis.stop());
    const [client = '', ...ping] = redisCheck?.test.slice(1) ?? [];
    await untilHealthy([client, '-p', String(redis.port), ...ping], { REDISCLI_AUTH: SECRETS.REDIS_PASSWORD });

    const backend = service('sample-backend');
    const backendPort = await freePort();
    const atBackend = (value: string) => value.replace("'0.0.0.0'", "'127.0.0.1'").replace(':3000', `:${backendPort}`);
    run(backend, backend.entrypoint ?? [], atBackend);
    await untilHealthy((backend.healthcheck?.test.slice(1) ?? []).map(atBackend));

    const ports = async () => ({ public: await freePort(), ops: await freePort(), admin: await freePort() });
    const own = { 'gateway-1': await ports(), 'gateway-2': await ports() };
    // The file that both mount, with HAProxy's address and the ports of each.
    for (const name of GATEWAYS) {
      const config = parse(read('compose/gateway/gateway.yaml'));
      Object.assign(config.listen, { host: '127.0.0.1', port: own[name].public, trusted_proxies: ['127.0.0.1'] });
      Object.assign(config.admin, { port: own[name].admin });
      // On a busy machine, Redis may stand still for longer than the default.
      Object.assign(config.store, { timeout_ms: 2000 });
      writeFileSync(
        join(folder, `${name}.yaml`),
        stringify({ ...config, ops: { host: '127.0.0.1', port: own[name].ops } }),
      );
    }
    const start = async (name: (typeof GATEWAYS)[number]) => {
      const at = (value: string) =>
        value
          .replace('redis:6379', `127.0.0.1:${redis.port}`)
          .replace('sample-backend:3000', `127.0.0.1:${backendPort}`)
          .replace('/etc/tollgate/gateway.yaml', join(folder, `${name}.yaml`));
      const gateway = run(service(name), [...readCommand('ENTRYPOINT'), ...(service(name).command ?? [])], at);
      await untilHealthy(readCommand('HEALTHCHECK'), { OPS_PORT: String(own[name].ops) });
      return gateway;
    };
    const gateways = { 'gateway-1': await start('gateway-1'), 'gateway-2': await start('gateway-2') };

    const publicPort = await freePort();
    const balancer = GATEWAYS.reduce(
      (text, name) => text.replace(`${name}:8080`, `127.0.0.1:${own[name].public} check port ${own[name].ops}`),
      read('compose/haproxy.cfg').replace('bind :8080', `bind 127.0.0.1:${publicPort}`),
    );
    writeFileSync(join(folder, 'haproxy.cfg'), balancer);
    const haproxy = [inject('haproxy'), '-db', '-f', join(folder, 'haproxy.cfg')];
    run(service('haproxy'), haproxy, (value) => value);

    copyFileSync(join(DEPLOY, 'compose/prometheus.yml'), join(folder, 'prometheus.yml'));
    copyFileSync(join(REPOSITORY, 'config/prometheus/alerts.yaml'), join(folder, 'alerts.yaml'));
    const targets = GATEWAYS.map((name) => `127.0.0.1:${own[name].ops}`);
    const prometheus = await startPrometheus(targets, folder);
    const up = async () => (await prometheus.query('sum(up{job="tollgate"})'))[0]?.value[1];

    // As the file's own comment has it, in the container of the first gateway.
    const tollgate = (...args: string[]) => {
      const url = `http://127.0.0.1:${own['gateway-1'].admin}`;
      const env = { PATH: process.env.PATH, TOLLGATE_ADMIN_TOKEN: SECRETS.TOLLGATE_ADMIN_TOKEN };
      const command = ['src/main.ts', ...args, '--admin-url', url];
      const { status, stdout, stderr } = spawnSync('node', command, { cwd: REPOSITORY, env, encoding: 'utf8' });
      expect(status, stderr).toBe(0);
      return stdout;
    };
    tollgate('customers', 'create', 'acme', '--plan', 'enterprise', '--requests-per-hour', '1000000');
    const { key } = JSON.parse(tollgate('keys', 'create', 'acme', '--json'));

    const url = `http://127.0.0.1:${publicPort}`;
    const isServed = () => fetch(`${url}/v1/conversations`, { headers: bearer(key) }).then(({ status }) => status);
    await expect.poll(() => isServed().catch(() => 0), HEALTHY).toBe(200);
    await expect.poll(up, HEALTHY).toBe('2');

    const used = async () => {
      const usage = await fetch(`${url}/v1/usage`, { headers: bearer(key) });
      return ((await usage.json()) as { used: number }).used;
    };
    await expect.poll(used, HEALTHY).toBe(1);
    const load = startLoad(Array<string>(CLIENTS).fill(url), () => key);
    await load.more(200);
    for (const name of GATEWAYS) {
      const graceSeconds = Number.parseInt(service(name).stop_grace_period ?? '10', 10);
      const exited = once(gateways[name], 'exit', { signal: AbortSignal.timeout(graceSeconds * 1000) });
      gateways[name].kill('SIGTERM');
      expect(await exited).toStrictEqual([0, null]);
      gateways[name] = await start(name);
      await load.more(200);
    }
    const answers = await load.stop();
    expect(new Set(answers.map(({ status }) => status))).toStrictEqual(new Set([200]));
    await expect.poll(used, HEALTHY).toBe(1 + answers.length);
    await expect.poll(up, HEALTHY).toBe('2');
    for (const { name, health, lastError } of await prometheus.rules())
      expect(health, `${name}: ${lastError}`).toBe('ok');
  },
);
