/**
 * A Redis that hangs (a stopped process, a stalled disk) keeps its connections open and replies to nothing. Closing the
 * store waited for its reply to QUIT without a deadline: SIGTERM did not end the gateway, and commands such as
 * `store reindex` never returned.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { startProgram } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';

/** Longer than any deadline that is involved, shorter than a test may take. */
const HANGS_MS = 10_000;

async function start(): Promise<{ redis: RedisServer; file: string }> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-hanging-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  const anyPort = '{ host: 127.0.0.1, port: 0 }';
  await writeFile(
    file,
    `listen: ${anyPort}
ops: ${anyPort}
store: { url: "${redis.url}" }
upstream: { urls: ["http://b"] }
shutdown: { not_ready_ms: 1, drain_ms: 100 }
`,
  );
  return { redis, file };
}

function inTime<T>(result: Promise<T>): Promise<T | 'hangs'> {
  return Promise.race([result, setTimeout(HANGS_MS, 'hangs' as const, { ref: false })]);
}

test.each(['and has failed a request', 'and nothing has noticed'])(
  'SIGTERM ends a gateway whose Redis hangs %s',
  async (when) => {
    const { redis, file } = await start();
    const gateway = await startProgram({ args: ['--config', file] });
    redis.pause();
    if (when === 'and has failed a request') {
      const answer = await fetch(`${gateway.public}/v1/conversations`, {
        headers: { Authorization: 'Bearer some-key' },
      });
      expect(answer.status).toBe(503);
    }
    gateway.signal('SIGTERM');
    expect(await inTime(gateway.finished)).toMatchObject({ status: 0 });
  },
);

test('a store closes while Redis hangs, as commands close it at their end', async () => {
  const { redis } = await start();
  const store = await openStore({ url: redis.url, keyPrefix: 'test', timeoutMs: 2000 }, silent);
  redis.pause();
  expect(await inTime(store.close().then(() => 'closed'))).toBe('closed');
});
