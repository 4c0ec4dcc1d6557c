/** The commands of docs/migration.md, as they are copied, do what it says. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { expect, inject, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.ts';
import { startRedisSystem } from '../support/redis-system.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const GUIDE = await readFile(join(ROOT, 'docs/migration.md'), 'utf8');

/** The blocks of this language in a chapter, as they stand, less what a list indents. */
function blocks(chapter: string, language: string): string[] {
  const [, text = ''] = GUIDE.split(`\n## ${chapter}\n`);
  const fence = new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\`$`, 'gms');
  const [own = ''] = text.split('\n## ');
  return [...own.matchAll(fence)].map(([, indent = '', block = '']) =>
    block.replaceAll(`\n${indent}`, '\n').trimStart(),
  );
}

const PROGRAM = (adminUrl: string) => `#!/bin/sh
case $1 in
  store) exec "${process.execPath}" "${ROOT}/src/main.ts" "$@" ;;
  *) exec "${process.execPath}" "${ROOT}/src/main.ts" "$@" --admin-url ${adminUrl} ;;
esac
`;

async function startGuide() {
  const system = await startRedisSystem();
  const { gateway, redis } = system;
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-migration-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await symlink(join(ROOT, 'config'), join(folder, 'config'));
  await writeFile(join(folder, 'tollgate'), PROGRAM(gateway.admin ?? ''));
  await chmod(join(folder, 'tollgate'), 0o755);
  const env = {
    ...CHILD_ENVIRONMENT,
    // The client comes with the server.
    PATH: [folder, process.env.PATH, dirname(inject('redisServer'))].join(delimiter),
    TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN,
    REDIS_URL: redis.url,
    UPSTREAM_URL: 'http://127.0.0.1:9',
  };
  /** Runs commands as a person would, and wants each to succeed. Resolves to what they print. */
  async function run(...commands: readonly string[]): Promise<string> {
    const script = commands.join('\n').replaceAll('http://127.0.0.1:8082', gateway.admin ?? '');
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
  return { ...system, folder, run };
}

async function statusFor(gateway: TestGateway, key: string): Promise<number> {
  return (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;
}

it('keys are imported by value, by hash, singly and from a file, and work from then on', async () => {
  const { gateway, folder, run } = await startGuide();
  await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'DELETE' });
  const [csv = ''] = blocks('Importing', 'csv');
  await writeFile(join(folder, 'keys.csv'), csv);
  const printed = await run(...blocks('Importing', 'sh'));

  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys');
  const names = body.items.map(({ name }: { name: string }) => name);
  expect(names.sort()).toEqual(['CI', 'mobile', 'production', 'staging']);
  const keys = ['old-key-4fG7hT9qLmZx2', 'old-key-1aB4cD6eFgHj3', 'old-key-8sK2vW5nRcYd7', 'old-key-5kL9mN2pQrSt8'];
  for (const key of keys) {
    expect(await statusFor(gateway, key)).toBe(200);
    expect(printed).not.toContain(key);
  }
  const { body: customers } = await callAdmin(gateway, '/admin/v1/customers');
  const plans = customers.items.map(({ id, plan }: { id: string; plan: string }) => `${id} ${plan}`);
  expect(plans.sort()).toEqual(['acme starter', 'hooli business', 'initech professional']);
});

it('a dashboard that writes Redis directly creates, changes, revokes and removes a key', async () => {
  const { gateway, redis, run } = await startGuide();
  const [recipe = '', changes = '', removal = ''] = blocks('Which system writes the records afterwards', 'sh');
  const names = recipe
    .split('\n')
    .filter((line) => line.includes('='))
    .slice(0, 2);
  const key = /KEY=(\S+)/.exec(recipe)?.[1] ?? '';
  const known = () => callAdmin(gateway, '/admin/v1/keys/dashboard-42');

  await run(recipe);
  expect(await statusFor(gateway, key)).toBe(200);
  expect((await known()).body).toMatchObject({ customer: 'globex', name: 'production', revoked_at: null });
  const { body: listed } = await callAdmin(gateway, '/admin/v1/customers/globex/keys');
  expect(listed.items).toHaveLength(1);
  expect((await callAdmin(gateway, '/admin/v1/customers/globex')).body).toMatchObject({ plan: 'starter', limit: 1000 });

  await run(...names, changes);
  await expect.poll(() => statusFor(gateway, key)).toBe(401);
  expect((await known()).body).toMatchObject({
    expires_at: '2030-01-31T00:00:00.000Z',
    revoked_at: '2026-02-28T00:00:00.000Z',
  });
  expect((await callAdmin(gateway, '/admin/v1/customers/globex')).body).toMatchObject({
    plan: 'business',
    limit: 2000,
    limit_source: 'temporary',
    suspended: true,
    suspended_until: '2030-01-31T00:00:00.000Z',
  });

  await run(...names, removal);
  expect((await known()).status).toBe(404);
  const left = await redis.command('KEYS', 'tollgate:*{globex}');
  expect(left).not.toContain('tollgate:customer-keys:{globex}');
  expect(left).toContain('tollgate:customer:{globex}');
});

it('reindexing adds what the recipe writes, no more and no less, and the store is declared to be meant so', async () => {
  const { redis, run } = await startGuide();
  const [recipe = '', , , afterwards = ''] = blocks('Which system writes the records afterwards', 'sh');
  const indexes = async () => [
    await redis.command('GET', 'tollgate:key-id:dashboard-42'),
    await redis.command('SMEMBERS', 'tollgate:customer-keys:{globex}'),
  ];
  await run(recipe);
  const written = await indexes();
  await redis.command('DEL', 'tollgate:key-id:dashboard-42', 'tollgate:customer-keys:{globex}', 'tollgate:installed');
  await run(afterwards);
  expect(await indexes()).toEqual(written);
  expect(await redis.command('EXISTS', 'tollgate:installed')).toBe(1);
});

it('the configuration to begin with counts by the limits and enforces none', async () => {
  const [yaml = ''] = blocks('Switch over step by step', 'yaml');
  const { folder } = await startGuide();
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, `${yaml}store: { url: "redis://127.0.0.1:6379" }\n`);
  const { plans, auth, upstream } = await loadConfig(file, { UPSTREAM_URL: 'http://127.0.0.1:9' });
  const policies = [...plans].map(([name, { requestsPerHour, shadow }]) => [
    name,
    requestsPerHour,
    shadow?.requestsPerHour,
  ]);
  expect(policies).toEqual([
    ['starter', 1_000_000, 1000],
    ['professional', 1_000_000, 5000],
    ['business', 1_000_000, 20_000],
    ['enterprise', 'custom', undefined],
  ]);
  expect([auth.browserKeys, upstream?.credentials]).toEqual(['warn', 'forward']);
});
