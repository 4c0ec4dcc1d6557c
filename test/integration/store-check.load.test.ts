/** "store check": what programs that write Redis themselves get wrong, without starting a gateway on it. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { tollgateHere } from '../cli/support.ts';
import { runProgram } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { createKeyWithCustomer, sha256Of } from '../support/stored-key.ts';

const CONFIG = `
plans:
  starter: { requests_per_hour: 1000 }
  gold: { requests_per_hour: 5000, formerly: [business] }
  enterprise: { requests_per_hour: custom }
  monthly: { requests_per_hour: 1000, period: { per: month, requests: 50000 } }
overrides: { overridden: { requests_per_hour: 5 } }
`;

async function argsOf(storeUrl: string, ...args: string[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-check-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, `store: { url: "${storeUrl}" }\nupstream: { urls: ["http://b"] }\n${CONFIG}`);
  return ['store', 'check', '--config', file, ...args];
}

async function check(storeUrl: string, ...args: string[]) {
  return await tollgateHere(...(await argsOf(storeUrl, ...args)));
}

const nameOf = (number: number) => `tollgate:key:${sha256Of(number)}`;
/** Told apart by their first digits, as real ones are. */
const hashOf = (digit: string) => digit.repeat(64);
const shown = (digit: string) => `tollgate:key:${digit.repeat(12)}…`;

interface Item {
  readonly record: string;
  readonly fault: string;
  readonly text: string;
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.command('FLUSHALL'));

/** A key as a dashboard that does all right writes it, or with other fields and indexes. */
async function writeKey(digit: string, fields: Record<string, string> = {}): Promise<void> {
  const { id, customer, ...others } = { id: `k${digit}`, customer: 'acme', ...fields };
  const all = Object.entries({ id, customer, ...others }).flat();
  await redis.command('HSET', `tollgate:key:${hashOf(digit)}`, ...all);
  await redis.command('SET', `tollgate:key-id:${id}`, hashOf(digit));
  await redis.command('SADD', `tollgate:customer-keys:{${customer}}`, id);
}

function writeCustomer(id: string, fields: Record<string, string> = {}): Promise<unknown> {
  return redis.command('HSET', `tollgate:customer:{${id}}`, ...Object.entries({ plan: 'starter', ...fields }).flat());
}

async function faultsIn(url: string): Promise<string[][]> {
  const { status, stdout, stderr } = await check(url, '--json');
  const { items, faulty } = JSON.parse(stdout) as { items: Item[]; faulty: number };
  expect({ status, stderr }).toEqual({ status: faulty === 0 ? 0 : 1, stderr: expect.any(String) });
  return items.map(({ record, fault }) => [record, fault]).toSorted();
}

test('a server that is too slow for requests is not too slow for a command', async () => {
  let isDone = false;
  const pausing = (async () => {
    while (!isDone) await redis.command('CLIENT', 'PAUSE', '300', 'ALL');
  })();
  const { status } = await check(redis.url).finally(() => {
    isDone = true;
  });
  expect(status).toBe(0);
  await pausing;
});

describe('records that are as they should be', () => {
  test('are counted, and nothing else is printed', async () => {
    await writeCustomer('acme');
    await writeCustomer('renamed', { plan: 'business', suspended: 'true' });
    await writeCustomer('big', { plan: 'enterprise', requests_per_hour: '7' });
    await writeCustomer('overridden', { plan: 'enterprise', suspended: '2026-01-01T00:00:00Z' });
    await writeKey('a', { expires_at: '2001-01-01T00:00:00Z', created_at: '2000-01-01T00:00:00Z' });
    await writeKey('b', { customer: 'gone', revoked_at: '2001-01-01T00:00:00Z', name: '', prefix: 'tg_abc' });
    await redis.command('SET', 'tollgate:installed', 'init-x');
    expect(await runProgram({ args: await argsOf(redis.url) })).toEqual({
      status: 0,
      stdout: 'Keys read: 2, customers read: 4. Nothing is wrong.\n',
      stderr: '',
    });
    const { stdout } = await check(redis.url, '--json');
    expect(JSON.parse(stdout)).toEqual({ items: [], keys: 2, customers: 4, faulty: 0, faults: {} });
  });
});

/** What is wrong, how it is written, and what is reported of which record. */
const WRONG: readonly (readonly [
  what: string,
  write: () => Promise<unknown>,
  name: string,
  faults: readonly string[],
])[] = [
  [
    'a key that is a string',
    () => redis.command('SET', `tollgate:key:${hashOf('1')}`, 'x'),
    shown('1'),
    ['wrong_type'],
  ],
  [
    'a key without id',
    () => redis.command('HSET', `tollgate:key:${hashOf('2')}`, 'customer', 'acme'),
    shown('2'),
    ['no_id'],
  ],
  [
    'a hash without any field of a key',
    () => redis.command('HSET', `tollgate:key:${hashOf('3')}`, 'Id', 'k', 'Customer', 'acme'),
    shown('3'),
    ['no_id', 'no_customer'],
  ],
  ['a key with an id that is none', () => writeKey('4', { id: 'two words' }), shown('4'), ['bad_id']],
  [
    'a key with a customer that is none',
    () => writeKey('5', { customer: 'two words' }),
    shown('5'),
    ['bad_customer_id'],
  ],
  [
    'a hash in capitals',
    () => redis.command('HSET', `tollgate:key:${hashOf('A')}`, 'id', 'k', 'customer', 'acme'),
    'tollgate:key:AAAA…',
    ['bad_name'],
  ],
  [
    'times that cannot be read',
    () => writeKey('6', { expires_at: '31.1.2030', revoked_at: 'no', created_at: 'yesterday' }),
    shown('6'),
    ['unreadable_time', 'unreadable_time', 'unreadable_time'],
  ],
  [
    'restrictions that cannot be read',
    () => writeKey('9', { scopes: ' ', allowed_addresses: 'everywhere' }),
    shown('9'),
    ['unreadable_scopes', 'unreadable_addresses'],
  ],
  [
    'a key of a customer without a record',
    () => writeKey('7', { customer: 'nobody' }),
    shown('7'),
    ['missing_customer'],
  ],
  [
    'a key that is not indexed',
    () => redis.command('HSET', `tollgate:key:${hashOf('8')}`, 'id', 'k8', 'customer', 'acme'),
    shown('8'),
    ['missing_index'],
  ],
  [
    'a key that only one index has',
    async () => {
      await writeKey('9');
      await redis.command('SREM', 'tollgate:customer-keys:{acme}', 'k9');
    },
    shown('9'),
    ['missing_index'],
  ],
  [
    'an entry that leads to a key that is gone',
    async () => {
      await writeKey('a');
      await redis.command('SET', 'tollgate:key-id:ka', hashOf('0'));
    },
    shown('a'),
    ['missing_index'],
  ],
  [
    'an index of another type',
    async () => {
      await writeKey('b');
      await redis.command('DEL', 'tollgate:key-id:kb');
      await redis.command('SADD', 'tollgate:key-id:kb', hashOf('b'));
    },
    shown('b'),
    ['damaged_index'],
  ],
  [
    'a second key with an id',
    async () => {
      await writeKey('c');
      await redis.command('HSET', `tollgate:key:${hashOf('d')}`, 'id', 'kc', 'customer', 'acme');
    },
    shown('d'),
    ['duplicate_id'],
  ],
  [
    'a customer that is a list',
    () => redis.command('RPUSH', 'tollgate:customer:{listed}', 'x'),
    'tollgate:customer:{listed}',
    ['wrong_type'],
  ],
  [
    'a customer without a plan',
    () => writeCustomer('planless', { plan: '' }),
    'tollgate:customer:{planless}',
    ['no_plan'],
  ],
  [
    'a plan that is not configured',
    () => writeCustomer('misspelt', { plan: 'Starter' }),
    'tollgate:customer:{misspelt}',
    ['unknown_plan'],
  ],
  [
    'a custom plan without a number',
    () => writeCustomer('numberless', { plan: 'enterprise' }),
    'tollgate:customer:{numberless}',
    ['no_limit'],
  ],
  [
    'a number that is none',
    () => writeCustomer('misnumbered', { requests_per_hour: '1,000' }),
    'tollgate:customer:{misnumbered}',
    ['no_limit'],
  ],
  [
    'a number of a period that is none',
    () => writeCustomer('misnumbered-period', { plan: 'monthly', period_requests: '1,000' }),
    'tollgate:customer:{misnumbered-period}',
    ['no_limit'],
  ],
  [
    'periods that begin between two hours',
    () => writeCustomer('misanchored', { period_anchor: '2026-01-31T10:30:00Z' }),
    'tollgate:customer:{misanchored}',
    ['unreadable_period_anchor'],
  ],
  [
    'a customer that is suspended by the word for the opposite',
    () => writeCustomer('not-suspended', { suspended: 'no' }),
    'tollgate:customer:{not-suspended}',
    ['doubtful_suspended'],
  ],
  [
    'a customer whose only limit is one for a time',
    () =>
      writeCustomer('only-for-a-time', {
        plan: 'enterprise',
        temporary_requests_per_hour: '5',
        temporary_until: '2100-01-01T00:00:00Z',
      }),
    'tollgate:customer:{only-for-a-time}',
    ['no_limit'],
  ],
  [
    'an end without a suspension',
    () => writeCustomer('end-alone', { suspended_until: '2100-01-01T00:00:00Z' }),
    'tollgate:customer:{end-alone}',
    ['ineffective_suspended_until'],
  ],
  [
    'a suspension that began after the end that an earlier one left',
    () => writeCustomer('again', { suspended: '2026-11-20T00:00:00Z', suspended_until: '2026-11-01T00:00:00Z' }),
    'tollgate:customer:{again}',
    ['ineffective_suspended_until'],
  ],
  [
    'a customer with a URL of its private network for notices',
    () => writeCustomer('notified', { notify_url: 'https://10.0.0.1/' }),
    'tollgate:customer:{notified}',
    ['bad_notify_url'],
  ],
  [
    'a customer without braces',
    () => redis.command('HSET', 'tollgate:customer:unbraced', 'plan', 'starter'),
    'tollgate:customer:unbraced',
    ['unbraced_name'],
  ],
  [
    'an id that no customer can have',
    () => writeCustomer('two words'),
    'tollgate:customer:{two words}',
    ['bad_customer_id'],
  ],
];

describe('what is wrong is listed with where it is and what to do', () => {
  test('each kind of fault, once for each record, and nothing else', async () => {
    await writeCustomer('acme');
    await writeCustomer('ended', { suspended: '1', suspended_until: '2020-01-01T00:00:00Z' });
    await writeCustomer('ended-date', { suspended: '2019-12-01T00:00:00Z', suspended_until: '2020-01-01T00:00:00Z' });
    for (const [, write] of WRONG) await write();
    const expected = WRONG.flatMap(([, , name, faults]) => faults.map((fault) => [name, fault]));
    expect(await faultsIn(redis.url)).toEqual(expected.toSorted());
  });

  test('two keys with one id that no index has are found, one of them as the second', async () => {
    await writeCustomer('acme');
    for (const digit of ['a', 'b']) {
      await redis.command('HSET', `tollgate:key:${hashOf(digit)}`, 'id', 'k', 'customer', 'acme');
    }
    const faults = await faultsIn(redis.url);
    expect(faults.map(([, fault]) => fault).toSorted()).toEqual(['duplicate_id', 'missing_index']);
  });

  test('the key itself, in a field or in place of its hash, is found and not shown', async () => {
    const key = 'key-that-nobody-may-see';
    const sha256 = createHash('sha256').update(key).digest('hex');
    await writeCustomer('acme');
    await redis.command('HSET', `tollgate:key:${sha256}`, 'id', key, 'customer', 'acme', 'prefix', key);
    await redis.command('HSET', `tollgate:key:${key}`, 'id', 'k', 'customer', 'acme');
    const { stdout } = await check(redis.url);
    expect(stdout).not.toContain(key);
    expect(stdout).not.toContain(sha256);
    const short = `tollgate:key:${sha256.slice(0, 12)}…`;
    for (const field of ['id', 'prefix']) expect(stdout).toContain(`${short} has the key itself in the field ${field}`);
    expect(stdout).toContain('tollgate:key:key-… is read by no gateway');
  });
});

test('one line for each fault, with a summary, and nothing that moves the cursor', async () => {
  await writeCustomer('acme');
  await redis.command('HSET', `tollgate:key:${hashOf('a')}`, 'customer', 'acme');
  await redis.command('HSET', 'tollgate:customer:\u001b[2J', 'plan', 'starter');
  const { status, stdout } = await check(redis.url);
  expect(status).toBe(1);
  expect(stdout).toBe(
    [
      `${shown('a')} has no id, so the key is refused as invalid: write the field id (HSET)`,
      "tollgate:customer:\\u{1b}[2J is read by no gateway: the customer's id must be in braces. Rename it to tollgate:customer:{<customer>}",
      'Keys read: 1, customers read: 2. Records with faults: 2 (no_id 1, unbraced_name 1).',
      '',
    ].join('\n'),
  );
});

test('thousands of records, many of them wrong, are all listed', async () => {
  await writeCustomer('acme');
  for (let i = 0; i < 2500; i++) await redis.command('HSET', nameOf(i), 'id', `k${i}`, 'customer', 'acme');
  const { stdout } = await check(redis.url, '--json');
  const { items, ...summary } = JSON.parse(stdout) as { items: Item[] };
  expect(items).toHaveLength(2500);
  expect(summary).toEqual({ keys: 2500, customers: 1, faulty: 2500, faults: { missing_index: 2500 } });
});

test('nothing is written, and a user that may only read is enough', async () => {
  const rules = ['+@read', '+@connection', '+info', '+subscribe', '~tollgate:*', '&__redis__:invalidate'];
  await redis.command('ACL', 'SETUSER', 'reader', 'on', '>some-password', 'resetkeys', 'resetchannels', ...rules);
  await writeCustomer('acme');
  await writeKey('a', { id: 'two words' });
  const before = await redis.command('DBSIZE');
  const { status, stdout, stderr } = await check(redis.url.replace('//', '//reader:some-password@'));
  expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
  expect(stdout).toContain('Keys read: 1, customers read: 1.');
  expect(await redis.command('DBSIZE')).toBe(before);
  expect(await redis.command('EXISTS', 'tollgate:installed')).toBe(0);
});

test('in the embedded store customers are held against the configuration', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-check-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const url = `sqlite:${join(folder, 'store.sqlite')}`;
  const store = await openStore({ url, keyPrefix: 'tollgate', timeoutMs: 100 }, silent);
  await createKeyWithCustomer(store.records, hashOf('a'), { id: 'k1', customer: 'acme' });
  await store.records.updateCustomer('acme', { plan: 'starter' });
  for (let i = 0; i < 1001; i++) {
    await store.records.createCustomer({ id: `c${i}`, plan: 'starter', suspended: false });
  }
  await store.records.createCustomer({ id: 'globex', plan: 'platinum', suspended: false });
  await store.close();
  expect(await faultsIn(url)).toEqual([['customer globex', 'unknown_plan']]);
});

test('a store that does not reply is a failure, not a store without faults', async () => {
  const { status, stdout, stderr } = await check('redis://127.0.0.1:1', '--json');
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^tollgate: not connected to Redis: .*ECONNREFUSED/);
});
