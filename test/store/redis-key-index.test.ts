/** The steps that hold when something else happens between them; each is tried where the other has just happened. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { scriptText } from '../../src/store/redis/connection/client.ts';
import { RedisConnection } from '../../src/store/redis/connection/connection.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { KeyIndex } from '../../src/store/redis/records/key-index.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { RecordingObserver } from './contract.ts';

const SHA256 = 'a'.repeat(64);
const OTHER_SHA256 = 'b'.repeat(64);
const RECORD = { id: 'k1', customer: 'acme' };

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.command('FLUSHALL'));

async function openIndex(): Promise<KeyIndex> {
  const connection = new RedisConnection({
    server: { host: '127.0.0.1', port: redis.port },
    name: 'tollgate-background',
    socketTimeoutMs: 2000,
    clock: systemClock,
    observer: new RecordingObserver(),
    onChange: () => undefined,
  });
  const index = new KeyIndex(connection, redisKeyNames('test'));
  await connection.open();
  onTestFinished(() => connection.close());
  return index;
}

function runScript(file: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
  const lua = scriptText(new URL(`../../src/store/redis/records/${file}`, import.meta.url));
  return redis.command('EVAL', lua, keys.length, ...keys, ...args);
}

function writeRecord(): Promise<unknown> {
  return redis.command('HSET', `test:key:${SHA256}`, 'id', RECORD.id, 'customer', RECORD.customer);
}

test('an entry by id that led nowhere and is taken away is put back when its key has come meanwhile', async () => {
  const index = await openIndex();
  await redis.command('SET', 'test:key-id:k1', SHA256);
  const entries = await index.read('reindex', ['k1']);
  expect(entries).toEqual([{ id: 'k1', sha256: SHA256 }]);
  await writeRecord();
  expect(await index.dropIds('reindex', entries)).toBe(0);
  expect(await index.read('reindex', ['k1'])).toEqual([{ id: 'k1', sha256: SHA256, record: RECORD }]);
});

test('an entry by id that leads elsewhere by now is left alone', async () => {
  const index = await openIndex();
  await redis.command('SET', 'test:key-id:k1', OTHER_SHA256);
  expect(await index.dropIds('reindex', [{ id: 'k1', sha256: SHA256 }])).toBe(0);
  expect(await index.redirect('reindex', 'k1', SHA256, 'c'.repeat(64))).toBe(false);
  expect(await redis.command('GET', 'test:key-id:k1')).toBe(OTHER_SHA256);
});

test('an entry of a customer that led nowhere and is taken away is put back when its key has come meanwhile', async () => {
  const index = await openIndex();
  await redis.command('SET', 'test:key-id:k1', SHA256);
  await redis.command('SADD', 'test:customer-keys:{acme}', 'k1', 'gone');
  await writeRecord();
  expect(await index.dropFromCustomer('reindex', 'acme', [{ id: 'k1' }, { id: 'gone' }])).toBe(1);
  expect(await redis.command('SMEMBERS', 'test:customer-keys:{acme}')).toEqual(['k1']);
});

test.each<[string, readonly string[], number]>([
  ['is still the same', ['k1', 'acme'], 1],
  ['has another id by now', ['k2', 'acme'], 0],
  ['has another customer by now', ['k1', 'globex'], 0],
])('a key is deleted only when its record %s', async (_what, expected, deleted) => {
  await writeRecord();
  expect(await runScript('delete-key.lua', [`test:key:${SHA256}`], expected)).toBe(deleted);
  expect(await redis.command('EXISTS', `test:key:${SHA256}`)).toBe(1 - deleted);
});

test('a customer to whom a key came meanwhile is not deleted yet', async () => {
  const names = ['test:customer-keys:{acme}', 'test:customer:{acme}', 'test:window:{acme}'];
  await redis.command('HSET', 'test:customer:{acme}', 'plan', 'starter');
  await redis.command('HSET', 'test:window:{acme}', 'head', 'x');
  await redis.command('SADD', 'test:customer-keys:{acme}', 'k1');
  expect(await runScript('delete-customer.lua', names, [])).toBe(0);
  expect(await redis.command('EXISTS', ...names)).toBe(3);
  await redis.command('SREM', 'test:customer-keys:{acme}', 'k1');
  expect(await runScript('delete-customer.lua', names, [])).toBe(1);
  // The record's mark stays until the usage history is deleted.
  expect(await redis.command('EXISTS', ...names)).toBe(1);
  expect(await redis.command('HKEYS', 'test:customer:{acme}')).toEqual(['deleting']);
});
