/**
 * A store that lost its data does not know keys that are good. A caller that is told so would throw its key away, so
 * nobody is told that a key is invalid until the store is known to be whole.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { runProgram } from '../support/process.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { INSTALLED_NAME, type RedisSystem, startRedisSystem, writeKey } from '../support/redis-system.ts';

const KEYS = 200;

async function read({ public: url }: TestGateway, key: string): Promise<{ status: number; code: string | undefined }> {
  const answer = await fetch(`${url}/v1/conversations`, { headers: bearer(key) });
  const { code } = (await answer.json()) as { code?: string };
  return { status: answer.status, code };
}

async function isWiped(gateway: TestGateway): Promise<boolean> {
  return (await callAdmin(gateway, '/status')).body.store.wiped;
}

/** Keys that no gateway has in memory. */
async function writeKeys({ redis, customer }: RedisSystem): Promise<readonly string[]> {
  const keys = Array.from({ length: KEYS }, (_, i) => `key-number-${i}`);
  for (const key of keys) await writeKey(redis, key, customer);
  return keys;
}

interface Backup {
  restore(): Promise<void>;
}

async function backUp(redis: RedisServer): Promise<Backup> {
  const names = (await redis.command('KEYS', '*')) as string[];
  const commands: string[][] = [];
  for (const name of names) {
    const type = await redis.command('TYPE', name);
    if (type === 'hash') commands.push(['HSET', name, ...((await redis.command('HGETALL', name)) as string[])]);
    if (type === 'string') commands.push(['SET', name, String(await redis.command('GET', name))]);
  }
  // What says that the store is whole comes last.
  commands.sort((a, b) => Number(a[1] === INSTALLED_NAME) - Number(b[1] === INSTALLED_NAME));
  return {
    async restore() {
      for (const [name = '', ...rest] of commands) await redis.command(name, ...rest);
    },
  };
}

test.each(['FLUSHALL', 'FLUSHDB'])(
  'no key gets 401 after %s under traffic: keys in memory are served, others get 503',
  async (wipe) => {
    const system = await startRedisSystem({ customer: { plan: 'business' } });
    const { redis, gateway, key } = system;
    const keys = await writeKeys(system);
    expect((await read(gateway, key)).status).toBe(200);

    const answers: { status: number; code: string | undefined }[] = [];
    let wiped: Promise<unknown> | undefined;
    for (const [index, other] of keys.entries()) {
      // The answers of this round cross the deletion.
      if (index === KEYS / 2) wiped = redis.command(wipe);
      const round = await Promise.all([read(gateway, other), read(gateway, key)]);
      expect(round[1].status).toBe(200);
      answers.push(round[0]);
    }
    await wiped;

    const before = answers.slice(0, KEYS / 2);
    const after = answers.slice(KEYS / 2 + 1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
    expect(before).toEqual(Array(before.length).fill({ status: 200, code: undefined }));
    expect(after).toEqual(Array(after.length).fill({ status: 503, code: 'store_unavailable' }));
    expect(await isWiped(gateway)).toBe(true);
  },
);

test('a key that was unknown before the store lost its data is not called invalid afterwards', async () => {
  const { redis, gateway, key } = await startRedisSystem();
  await read(gateway, key);
  expect(await read(gateway, 'a-key-of-nobody')).toEqual({ status: 401, code: 'invalid_key' });
  await redis.command('FLUSHALL');
  await expect.poll(() => isWiped(gateway), { interval: 5 }).toBe(true);
  expect(await read(gateway, 'a-key-of-nobody')).toEqual({ status: 503, code: 'store_unavailable' });
});

test('a Redis that restarts empty after a crash counts as having lost its data', async () => {
  const { redis, gateway, key } = await startRedisSystem();
  expect((await read(gateway, key)).status).toBe(200);
  await redis.restart();
  await expect.poll(() => isWiped(gateway)).toBe(true);
  expect(await read(gateway, 'a-key-of-nobody')).toEqual({ status: 503, code: 'store_unavailable' });
  expect((await read(gateway, key)).status).toBe(200);
});

test('when the data is restored, valid keys work and unknown keys get 401 again', async () => {
  const system = await startRedisSystem();
  const { redis, gateway, key } = system;
  const [later = ''] = await writeKeys(system);
  expect((await read(gateway, key)).status).toBe(200);
  const backup = await backUp(redis);
  await redis.command('FLUSHALL');
  await expect.poll(() => isWiped(gateway), { interval: 5 }).toBe(true);

  await backup.restore();
  await expect.poll(() => isWiped(gateway), { interval: 5 }).toBe(false);
  expect((await read(gateway, key)).status).toBe(200);
  expect((await read(gateway, later)).status).toBe(200);
  expect(await read(gateway, 'a-key-of-nobody')).toEqual({ status: 401, code: 'invalid_key' });
});

test('after "store init" an empty store is trusted again', async () => {
  const { redis, gateway } = await startRedisSystem();
  await redis.command('FLUSHALL');
  expect(await read(gateway, 'never-was-a-key')).toEqual({ status: 503, code: 'store_unavailable' });

  const folder = await mkdtemp(join(tmpdir(), 'tollgate-init-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, `store: { url: "${redis.url}" }\nupstream: { urls: ["http://b"] }\n`);
  const { status, stdout, stderr } = await runProgram({ args: ['store', 'init', '--config', file] });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('The content of the store is accepted as complete');

  await expect.poll(() => read(gateway, 'never-was-a-key')).toEqual({ status: 401, code: 'invalid_key' });
  expect(await isWiped(gateway)).toBe(false);
});
