import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tollgateHere } from '../cli/support.ts';
import { runProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';

async function argsOf(storeUrl: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-reindex-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, `store: { url: "${storeUrl}" }\nupstream: { urls: ["http://b"] }\n`);
  return ['store', 'reindex', '--config', file];
}

async function reindex(storeUrl: string) {
  return await tollgateHere(...(await argsOf(storeUrl)));
}

test('"store reindex" indexes the keys that other programs wrote, says what it did, and names those that it could not', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  await redis.command('SET', 'tollgate:installed', 'x');
  for (const [digit, id] of Object.entries({ a: 'k1', b: 'k2', c: 'k1' })) {
    await redis.command('HSET', `tollgate:key:${digit.repeat(64)}`, 'id', id, 'customer', 'acme');
    // Which of two keys keeps their id is whichever is found first; here it is settled.
    if (digit === 'a') await redis.command('SET', 'tollgate:key-id:k1', 'a'.repeat(64));
  }
  await redis.command('SET', 'tollgate:key-id:gone', 'd'.repeat(64));

  const first = await runProgram({ args: await argsOf(redis.url) });
  expect(first).toMatchObject({ status: 0, stderr: '' });
  expect(first.stdout).toBe(
    [
      '2 keys are indexed: 3 entries added, 1 without a key deleted.',
      'Not indexed: duplicate_id 1 (at most 10 are listed; "tollgate store check" lists all):',
      `  tollgate:key:${'c'.repeat(12)}… has the same id as tollgate:key:${'a'.repeat(12)}…, so it cannot be revoked by it: give one of them another id, and run "tollgate store reindex"`,
      '',
    ].join('\n'),
  );
  expect(await redis.command('GET', 'tollgate:key-id:k2')).toBe('b'.repeat(64));

  await redis.command('DEL', `tollgate:key:${'c'.repeat(64)}`);
  const second = await reindex(redis.url);
  expect(second).toMatchObject({
    status: 0,
    stdout: '2 keys are indexed: 0 entries added, 0 without a key deleted.\n',
    stderr: '',
  });
});

test('"store reindex" of the embedded store says that there is nothing to do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-reindex-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const { status, stdout, stderr } = await reindex(`sqlite:${join(folder, 'store.sqlite')}`);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toBe('The embedded store keeps its indexes itself: there is nothing to do.\n');
});

test('"store reindex" with an unavailable store fails, and says why', async () => {
  const { status, stdout, stderr } = await reindex('redis://127.0.0.1:1');
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^tollgate: not connected to Redis: .*ECONNREFUSED/);
});
