/** The commands of docs/backup.md, as they are copied, back up and restore a store. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { freePort } from '../../bench/free-port.ts';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.ts';
import { type RunningGateway, startProgram } from '../support/process.ts';
import { connectTo } from '../support/redis-server.ts';
import { keyName } from '../support/redis-system.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/backup.md'), 'utf8');
const BLOCKS = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);

function blockWith(text: string): string {
  const [block, ...others] = BLOCKS.filter((each) => each.includes(text));
  if (block === undefined || others.length > 0) throw new Error(`docs/backup.md has not one block with ${text}`);
  return block;
}

/** A folder in the place of the machine's own folders, and programs that start and stop servers there. */
async function openMachine() {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-backup-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['bin', 'backup', 'redis', 'tollgate', 'config']) mkdirSync(join(folder, name));
  const port = await freePort();
  const restoredPort = await freePort();
  const places: readonly [string | RegExp, string][] = [
    ['/etc/redis/redis.conf', join(folder, 'redis.conf')],
    [/\/var\/lib\/|(?<=[ "])\/(?=backup\/)/g, `${folder}/`],
    [/redis-cli (?=[A-Z])/g, `redis-cli -p ${port} `],
    [/6390/g, String(restoredPort)],
  ];
  const program = (name: string, script: string) => {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${script}`);
    chmodSync(join(folder, 'bin', name), 0o755);
  };
  program('tollgate', `exec "${process.execPath}" "${ROOT}/src/main.ts" "$@"`);
  // The page looks again after a second, a test sooner.
  program('sleep', 'exec /bin/sleep 0.05');
  program(
    'systemctl',
    `end() { kill -TERM $1; while kill -0 $1 2>/dev/null; do sleep 1; done; }
case "$1 $2" in
  'start redis-server') redis-server ${folder}/redis.conf ;;
  'stop redis-server') end $(cat ${folder}/redis.pid) ;;
  'stop tollgate') end $(cat ${folder}/tollgate.pid) ;;
  'show --property') cat ${folder}/tollgate.pid ;;
esac
`,
  );
  symlinkSync(inject('redisServer'), join(folder, 'bin/redis-server'));
  const env = {
    ...CHILD_ENVIRONMENT,
    // The client comes with the server.
    PATH: [join(folder, 'bin'), process.env.PATH, dirname(inject('redisServer'))].join(delimiter),
    REDIS_URL: `redis://127.0.0.1:${port}`,
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(port),
    UPSTREAM_URL: 'http://127.0.0.1:9',
  };
  /** Runs commands as a person would, and wants each to succeed. Resolves to what they print. */
  async function run(...commands: readonly string[]): Promise<string> {
    const script = places.reduce((text, [place, here]) => text.replaceAll(place, here), commands.join('\n'));
    const shell = spawn('bash', ['-euo', 'pipefail'], { cwd: folder, env });
    let printed = '';
    for (const stream of [shell.stdout, shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
    }
    shell.stdin.end(script);
    const [status] = await once(shell, 'close');
    expect(status, printed).toBe(0);
    return printed;
  }
  /** Gives the one backup of this name the name that the page uses. */
  const name = (pattern: string, fixed: string) => {
    const [found = ''] = globSync(join(folder, pattern));
    renameSync(found, join(folder, fixed));
  };
  return { folder, port, restoredPort, url: env.REDIS_URL, run, name };
}

/** A Redis with append-only files, as `systemctl` of the machine starts it, and a gateway with a customer. */
async function startRedisMachine() {
  const machine = await openMachine();
  const { folder, port, restoredPort, url, run } = machine;
  const settings = { port, bind: '127.0.0.1', dir: join(folder, 'redis'), appendonly: 'yes', save: '""' };
  const daemon = { daemonize: 'yes', pidfile: join(folder, 'redis.pid') };
  const lines = Object.entries({ ...settings, ...daemon }).map(([key, value]) => `${key} ${value}\n`);
  writeFileSync(join(folder, 'redis.conf'), lines.join(''));
  symlinkSync(join(ROOT, 'config/gateway.yaml'), join(folder, 'config/gateway.yaml'));
  await run('systemctl start redis-server');
  onTestFinished(() => shutDown(port));
  onTestFinished(() => shutDown(restoredPort));
  await eventually('Redis runs', async () => (await command(port, 'PING')) === 'PONG');
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const startGateway = async () => {
    const gateway = await startTestGateway({ storeUrl: url, upstreamUrl: backend.url });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  const gateway = await startGateway();
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  return { ...machine, gateway, key, startGateway };
}

async function command(port: number, name: string, ...args: string[]): Promise<unknown> {
  const client = connectTo(port, {});
  try {
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}

/** Also where nothing listens. */
async function shutDown(port: number): Promise<void> {
  const client = connectTo(port, {});
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.call('SHUTDOWN', 'NOSAVE').catch(() => undefined);
  await closed;
  client.disconnect();
}

type Public = Pick<RunningGateway, 'public'>;

const statusOf = async (gateway: Public, key: string) =>
  (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;

const expectStatus = (gateway: Public, key: string, status: number) =>
  expect.poll(() => statusOf(gateway, key), { timeout: 30_000 }).toBe(status);

// The commands are those of GNU and Linux.
describe.runIf(process.platform === 'linux')('the commands of docs/backup.md', () => {
  it('restore a server from its snapshot while a gateway runs, and its append-only files have the data again', async () => {
    const { gateway, key, port, run, name } = await startRedisMachine();
    await run(blockWith('BGSAVE'));
    name('backup/tollgate-*.rdb', 'backup/tollgate.rdb');
    const later = await createCustomerWithKey(gateway, { id: 'later', plan: 'starter' });
    await expectStatus(gateway, later, 200);

    await run(blockWith('dump.rdb && chown'));
    await expectStatus(gateway, later, 401);
    await expectStatus(gateway, key, 200);
    await run('systemctl stop redis-server', 'systemctl start redis-server');
    await eventually(
      'the data is there',
      async () => Number(await command(port, 'EXISTS', 'tollgate:customer:{acme}')) === 1,
    );
  });

  it('restore a copy of the append-only files', async () => {
    const { folder, gateway, key, port, run, name } = await startRedisMachine();
    // Redis puts a write off for up to two seconds while the disk is busy.
    const files = join(folder, 'redis/appendonlydir/*.incr.aof');
    await eventually('the key is in the file', () =>
      globSync(files).some((file) => readFileSync(file, 'utf8').includes(keyName(key))),
    );
    await run(blockWith('auto-aof-rewrite-percentage 0'));
    name('backup/appendonlydir-*', 'backup/appendonlydir');
    await command(port, 'FLUSHALL');
    await run('systemctl stop redis-server');
    rmSync(join(folder, 'redis/appendonlydir'), { recursive: true });
    cpSync(join(folder, 'backup/appendonlydir'), join(folder, 'redis/appendonlydir'), { recursive: true });
    await run('systemctl start redis-server');
    await expectStatus(gateway, key, 200);
    await expectStatus(gateway, 'unknown-key', 401);
  });

  it('check a snapshot taken over the network, and restore it key by key: no valid key gets 401 meanwhile', async () => {
    const { gateway, key, port, run, startGateway } = await startRedisMachine();
    await run(blockWith('--rdb'));
    await command(port, 'FLUSHALL');
    const started = await startGateway();
    await expectStatus(started, key, 503);
    expect(await run(blockWith('mkdir restored'))).toContain('Nothing is wrong');

    const [lost = '', copy = ''] = blockWith('MIGRATE').split(
      /(?=redis-cli -u "\$REDIS_URL" SET tollgate:installed "\$id")/,
    );
    expect(await run(lost)).not.toContain('ERR');
    await expectStatus(started, 'unknown-key', 503);
    await run(lost, copy);
    for (const each of [gateway, started]) {
      await expectStatus(each, key, 200);
      await expectStatus(each, 'unknown-key', 401);
    }
  });

  it('copy the file of the embedded store while requests are served, and restore it', async () => {
    const { folder, run } = await openMachine();
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const anyPort = { host: '127.0.0.1', port: 0 };
    const file = join(folder, 'gateway.yaml');
    const config = {
      listen: anyPort,
      ops: anyPort,
      admin: { ...anyPort, token: ADMIN_TOKEN },
      upstream: { urls: [backend.url] },
      shutdown: { not_ready_ms: 0 },
      store: { url: `sqlite:${join(folder, 'tollgate/store.sqlite')}` },
    };
    writeFileSync(file, stringify(config));
    const start = async () => {
      const gateway = await startProgram({ args: ['--config', file] });
      writeFileSync(join(folder, 'tollgate.pid'), String(gateway.pid));
      return gateway;
    };
    const gateway = await start();
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    let isDone = false;
    const statuses = new Set<number>();
    const load = async () => {
      while (!isDone) statuses.add(await statusOf(gateway, key));
    };
    const senders = [load(), load(), load()];
    await eventually('requests are served', () => statuses.has(200));
    await run(blockWith('kill -STOP'));
    isDone = true;
    await Promise.all(senders);
    // On a busy machine the pause may outlast a lease: such a request was not sent, and may be repeated.
    expect(new Set([...statuses, 200, 503])).toEqual(new Set([200, 503]));
    const later = await createCustomerWithKey(gateway, { id: 'later', plan: 'starter' });

    await run(blockWith('rm -f'));
    await gateway.finished;
    const restored = await start();
    await expectStatus(restored, key, 200);
    await expectStatus(restored, later, 401);
  });
});
