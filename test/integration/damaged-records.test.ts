/**
 * Records that a dashboard wrote wrongly. They must not look like an outage of the store, and an operator must find them:
 * the log names the record, never the key, and the access log says whose key was refused. Clients learn nothing of it.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import {
  customerName,
  INSTALLED_NAME,
  keyName,
  type RedisSystem,
  startRedisSystem,
  writeCustomer,
  writeKey,
} from '../support/redis-system.ts';

const UUIDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const PAST = '2020-01-01T00:00:00Z';
const DAMAGED = 'a record in the store is damaged: repair it; "tollgate store check" lists all damaged records';

async function send(gateway: TestGateway, key: string): Promise<Response> {
  return fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
}

/** All that a client gets, without what differs from request to request. */
async function responseOf(gateway: TestGateway, key: string) {
  const response = await send(gateway, key);
  const headers = [...response.headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  return { status: response.status, headers, body: (await response.text()).replace(UUIDS, '') };
}

function accessLines({ logs }: TestGateway) {
  return logs.filter(({ msg }) => msg === 'request');
}

function damageLines({ logs }: TestGateway) {
  return logs.filter(({ msg }) => msg === DAMAGED);
}

/** As logs show the record's name. */
function shownName(key: string): string {
  return `tollgate:key:${createHash('sha256').update(key).digest('hex').slice(0, 12)}…`;
}

describe('a key that is refused as invalid', () => {
  it.each([
    ['revoked', { revoked_at: PAST }, { key_id: 'id-of-damaged-key', customer: 'acme' }],
    ['expired', { expires_at: PAST }, { key_id: 'id-of-damaged-key', customer: 'acme' }],
    ['of an unreadable expiry', { expires_at: 'never' }, { key_id: 'id-of-damaged-key', customer: 'acme' }],
    ['of an id that is none', { id: 'two words' }, { customer: 'acme' }],
    ['of a customer that is none', { customer: 'two words' }, { key_id: 'id-of-damaged-key' }],
  ])('being %s, is logged with its id and customer, and refused like an unknown one', async (_what, fields, known) => {
    const { redis, gateway } = await startRedisSystem();
    await writeKey(redis, 'damaged-key', 'acme');
    await redis.command('HSET', keyName('damaged-key'), ...Object.entries(fields).flat());
    const response = await responseOf(gateway, 'damaged-key');
    expect(response).toEqual(await responseOf(gateway, 'unknown-key'));
    expect(response.status).toBe(401);
    await expect.poll(() => accessLines(gateway).length).toBe(2);
    const [refused = {}, unknown = {}] = accessLines(gateway);
    expect(refused).toMatchObject({ status: 401, code: 'invalid_key', ...known });
    const { key_id, customer } = refused;
    expect({ ...(key_id !== undefined && { key_id }), ...(customer !== undefined && { customer }) }).toEqual(known);
    expect(unknown).not.toHaveProperty('key_id');
    expect(unknown).not.toHaveProperty('customer');
  });

  it('keeps its customer when it is refused for its number of attempts, and is in what the customer was refused', async () => {
    const { redis, gateway } = await startRedisSystem({ config: { auth: { failures_per_minute: 1 } } });
    await writeKey(redis, 'retired-key', 'acme');
    await redis.command('HSET', keyName('retired-key'), 'revoked_at', PAST);
    expect((await send(gateway, 'retired-key')).status).toBe(401);
    expect((await send(gateway, 'retired-key')).status).toBe(429);
    await expect.poll(() => accessLines(gateway).length).toBe(2);
    const ids = { key_id: 'id-of-retired-key', customer: 'acme' };
    expect(accessLines(gateway)).toMatchObject([
      { code: 'invalid_key', ...ids },
      { code: 'too_many_failures', ...ids },
    ]);
    const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/explain');
    expect(body.instance.refusals).toContainEqual(
      expect.objectContaining({ code: 'invalid_key', key_id: 'id-of-retired-key' }),
    );
  });
});

interface Damage {
  readonly what: string;
  /** Fields of a key's record; a string: what is there in place of a hash. */
  readonly key: Record<string, string> | string;
  readonly status: number;
  readonly faults: readonly string[];
  readonly ids: Record<string, string>;
}

describe('a damaged key record', () => {
  it.each<Damage>([
    { what: 'has no id', key: { customer: 'acme' }, status: 401, faults: ['no_id'], ids: { customer: 'acme' } },
    { what: 'has no customer', key: { id: 'k1' }, status: 401, faults: ['no_customer'], ids: { key_id: 'k1' } },
    {
      what: 'has an id that is none',
      key: { id: 'two words', customer: 'acme' },
      status: 401,
      faults: ['bad_id'],
      ids: { customer: 'acme' },
    },
    {
      what: 'has neither id nor customer that can be one',
      key: { id: 'k\n1', customer: '{acme}' },
      status: 401,
      faults: ['bad_id', 'bad_customer_id'],
      ids: {},
    },
    {
      what: 'has an unreadable expiry',
      key: { id: 'k1', customer: 'acme', expires_at: '31.1.2030' },
      status: 401,
      faults: ['unreadable_time'],
      ids: { key_id: 'k1', customer: 'acme' },
    },
    { what: 'is a string', key: 'acme', status: 503, faults: ['wrong_type'], ids: {} },
  ])(
    'that $what is logged and counted, does not make the store unavailable, and works once repaired',
    async (damage) => {
      const { key, status, faults, ids } = damage;
      const { redis, gateway, key: good } = await startRedisSystem({ config: { auth: { cache_seconds: 1 } } });
      const name = keyName('damaged-key');
      if (typeof key === 'string') await redis.command('SET', name, key);
      else await redis.command('HSET', name, ...Object.entries(key).flat());

      for (let i = 0; i < 3; i++) expect((await send(gateway, 'damaged-key')).status).toBe(status);
      expect((await send(gateway, good)).status).toBe(200);
      expect(damageLines(gateway).map(({ fault }) => fault)).toEqual(faults);
      for (const line of damageLines(gateway)) {
        expect(line).toMatchObject({ record: shownName('damaged-key'), reason: expect.any(String), ...ids });
        expect([line.key_id, line.customer]).toEqual([ids.key_id, ids.customer]);
      }
      expect(JSON.stringify(gateway.logs)).not.toContain(name.slice(-64));
      const counted = await readMetric(gateway, 'tollgate_damaged_records_total');
      for (const fault of faults) expect(counted[`record="key",fault="${fault}"`]).toBeGreaterThan(0);
      const auth = await readMetric(gateway, 'tollgate_auth_total');
      expect(auth['result="store_error"']).toBe(0);
      if (status === 503) expect(auth['result="unusable"']).toBe(3);
      expect(await (await fetch(`${gateway.ops}/readyz`)).json()).toMatchObject({ status: 'ready' });
      expect(await readMetric(gateway, 'tollgate_store_up')).toEqual({ '': 1 });
      expect(await readMetric(gateway, 'tollgate_degraded')).toEqual({ '': 0 });

      await redis.command('DEL', name);
      await writeKey(redis, 'damaged-key', 'acme');
      await expect.poll(async () => (await send(gateway, 'damaged-key')).status).toBe(200);
    },
  );

  it('is not replaced by its earlier content in memory', async () => {
    const { redis, gateway, key } = await startRedisSystem();
    expect((await send(gateway, key)).status).toBe(200);
    await redis.command('SET', keyName(key), 'revoked');
    await expect.poll(async () => (await send(gateway, key)).status).toBe(503);
    expect((await send(gateway, key)).status).toBe(503);
  });
});

describe('a damaged customer record', () => {
  const sendTo = async ({ redis, gateway }: RedisSystem) => {
    await writeKey(redis, 'key-of-globex', 'globex');
    return (await send(gateway, 'key-of-globex')).status;
  };

  it('under a name without braces is named, and how it must be called', async () => {
    const system = await startRedisSystem();
    await system.redis.command('HSET', 'tollgate:customer:globex', 'plan', 'starter');
    expect(await sendTo(system)).toBe(403);
    const { gateway } = system;
    await expect
      .poll(() => damageLines(gateway))
      .toMatchObject([
        {
          record: 'tollgate:customer:globex',
          fault: 'unbraced_name',
          customer: 'globex',
          reason: expect.stringContaining('Rename it to tollgate:customer:{globex}'),
        },
      ]);
    const counted = await readMetric(gateway, 'tollgate_damaged_records_total');
    expect(counted['record="customer",fault="unbraced_name"']).toBe(1);
    await system.redis.command('RENAME', 'tollgate:customer:globex', customerName('globex'));
    await expect.poll(() => sendTo(system)).toBe(200);
  });

  it('without a plan is named', async () => {
    const system = await startRedisSystem();
    await system.redis.command('HSET', customerName('globex'), 'requests_per_hour', '5');
    expect(await sendTo(system)).toBe(403);
    expect(damageLines(system.gateway)).toMatchObject([{ record: customerName('globex'), fault: 'no_plan' }]);
  });

  it('that is a string is named, and the admin API says what to do', async () => {
    const system = await startRedisSystem();
    await system.redis.command('SET', customerName('globex'), 'starter');
    expect(await sendTo(system)).toBe(503);
    const { gateway } = system;
    expect(damageLines(gateway)).toMatchObject([{ record: customerName('globex'), fault: 'wrong_type' }]);
    const { status, body } = await callAdmin(gateway, '/admin/v1/customers/globex');
    expect([status, body.code]).toEqual([503, 'store_unavailable']);
    expect(body.detail).toContain('tollgate store check');
    expect(await readMetric(gateway, 'tollgate_store_up')).toEqual({ '': 1 });
  });

  it('is not looked for where there is simply none', async () => {
    const system = await startRedisSystem();
    expect(await sendTo(system)).toBe(403);
    expect(damageLines(system.gateway)).toEqual([]);
  });
});

it('a damaged installation mark does not count as a damaged record', async () => {
  const { redis, backend } = await startRedisSystem();
  // In one step: a gateway that is still running would write the missing mark.
  const damage = "redis.call('DEL', KEYS[1]) redis.call('SADD', KEYS[1], 'x')";
  await redis.command('EVAL', damage, 1, INSTALLED_NAME);
  await writeCustomer(redis, 'globex', { plan: 'starter' });
  const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url });
  expect((await send(gateway, 'unknown-key')).status).toBe(503);
  expect(damageLines(gateway)).toEqual([]);
  await gateway.close();
});
