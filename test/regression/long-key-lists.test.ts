/**
 * A page of a customer's keys was cut from a list of all of them, which was read and sorted for each page: over 100,000 keys
 * a page of one took 9.5 s, and requests of callers waited meanwhile.
 */
import { expect, test } from 'vitest';
import { callAdmin } from '../support/admin.ts';
import { readCommandStats, startRedisSystem } from '../support/redis-system.ts';

const KEYS = 3000;
const PATH = '/admin/v1/customers/acme/keys';

test('a page of a customer with many keys costs what it shows, and all pages together show each key once', async () => {
  const { redis, gateway } = await startRedisSystem();
  for (let from = 0; from < KEYS; from += 100) await redis.command('EVAL', WRITE_KEYS, 0, from, from + 99);
  const readFields = async () => (await readCommandStats(redis)).get('hmget')?.calls ?? 0;

  const before = await readFields();
  const first = await callAdmin(gateway, `${PATH}?limit=1`);
  expect(first.body.items).toHaveLength(1);
  expect((await readFields()) - before).toBeLessThan(20);

  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await callAdmin(gateway, `${PATH}?limit=700${cursor}`);
    expect(status).toBe(200);
    expect(body.items.length).toBeLessThanOrEqual(700);
    for (const { id } of body.items) ids.push(id);
    if (body.next_cursor === null) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  expect(ids).toHaveLength(KEYS);
  expect(new Set(ids).size).toBe(KEYS);
});

/** With their index entries, as a dashboard would that follows docs/redis.md. */
const WRITE_KEYS = `
  for i = ARGV[1], ARGV[2] do
    local sha256 = string.rep('0', 60) .. string.format('%04d', i)
    redis.call('HSET', 'tollgate:key:' .. sha256, 'id', 'key-' .. i, 'customer', 'acme')
    redis.call('SET', 'tollgate:key-id:key-' .. i, sha256)
    redis.call('SADD', 'tollgate:customer-keys:{acme}', 'key-' .. i)
  end
`;
