import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { RedisConnection } from '../../src/store/redis/connection/connection.ts';
import { startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';

test('only what changes the state of a connection is reported as a change, not each reply', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const changes: (string | undefined)[] = [];
  const connection = new RedisConnection({
    server: { host: '127.0.0.1', port: redis.port },
    name: 'tollgate-records',
    commandTimeoutMs: 1000,
    socketTimeoutMs: 60_000,
    clock: systemClock,
    observer: silent.observer,
    onChange: (failure) => void changes.push(failure),
  });
  onTestFinished(() => connection.close());
  const get = () => connection.run('read_key', (client) => client.get('name'));
  await connection.open();
  expect(changes).toEqual([undefined]);

  for (let call = 0; call < 5; call += 1) await get();
  expect(changes).toHaveLength(1);

  redis.pause();
  await expect(get()).rejects.toThrow('Command timed out');
  redis.resume();
  await expect.poll(() => connection.isUsable()).toBe(true);
  expect(changes.slice(1)).toEqual(['Command timed out', undefined]);

  await redis.disconnect('tollgate-records');
  await expect.poll(() => changes.length).toBe(5);
  expect(changes.slice(3)).toEqual([expect.any(String), undefined]);
  expect(connection.isUsable()).toBe(true);
});
