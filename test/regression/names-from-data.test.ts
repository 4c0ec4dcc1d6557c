/**
 * One hash field in Redis ended every gateway: with a plan named `__proto__` in the stored totals, a read of the usage
 * history wrote to Object.prototype. Then reloads were refused and the process ended. Refusal codes such as
 * `constructor` became numbers that are none, and a plan named `__proto__` in the config file was dropped in silence.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { refusalOf } from '../../src/pages/client/format.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { dayName } from '../../src/store/usage-history.ts';
import { load, MINIMAL, problemsOf } from '../config/support.ts';
import { type StartAdmin, startAdmin } from '../control/admin/support.ts';
import { callAdmin } from '../support/admin.ts';
import { earlyInHour } from '../support/early-in-hour.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { startSystem } from '../support/system.ts';

const HOSTILE = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const overRedis: StartAdmin = (overrides) => startAdmin(overrides, { url: redis.url, keyPrefix: 'names' });

it('plans and refusal codes in Redis with names of Object.prototype are data like any other', async () => {
  await earlyInHour();
  const admin = await overRedis();
  const nowMs = Date.now();
  const day = dayName(nowMs);
  const hour = new Date(nowMs).toISOString().slice(11, 13);
  await admin.records.createCustomer({ id: 'constructor', plan: 'starter', suspended: false });
  for (const name of HOSTILE) {
    for (const what of ['requests', 'refused']) {
      await redis.command('HSET', `names:usage-total:${day}`, `${hour}:${name}:${what}`, '5');
    }
    await redis.command('HSET', redisKeyNames('names').usageDay('constructor', day), `${hour}:${name}`, '3');
  }
  const before = Object.getOwnPropertyNames(Object.prototype);

  for (const step of ['hour', 'day']) {
    const totals = await admin.call('GET', `/admin/v1/usage/history?step=${step}`);
    expect(Object.entries(totals.body.points.at(-1).plans).toSorted()).toEqual(
      HOSTILE.map((plan) => [plan, { requests: 5, refused: 5, upstream_errors: 0 }]).toSorted(),
    );
    const own = await admin.call('GET', `/admin/v1/customers/constructor/usage/history?step=${step}`);
    expect(own.body.points.at(-1)).toMatchObject({ refused: 12 });
    expect(Object.entries(own.body.points.at(-1).refused_by_code).toSorted()).toEqual(
      HOSTILE.map((code) => [code, 3]).toSorted(),
    );
  }
  const refused = await admin.call('GET', '/admin/v1/customers/constructor/explain');
  expect(refused.status).toBe(200);
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  expect(Object.entries({})).toEqual([]);
  expect(Object.hasOwn(Object.prototype, 'requests')).toBe(false);
  await admin.close();
});

it('the embedded store counts refusal codes with such names', async () => {
  await earlyInHour();
  const admin = await startAdmin();
  await admin.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const hourMs = Math.floor(((await admin.store.usageHistory?.nowMs()) ?? 0) / 3_600_000) * 3_600_000;
  const refusals = HOSTILE.map((code) => ({ customer: 'acme', hourMs, code, count: 2 }));
  await admin.store.usageHistory?.add({ counts: refusals, totals: [], near: [] });
  const { body } = await admin.call('GET', '/admin/v1/customers/acme/usage/history');
  expect(Object.entries(body.points.at(-1).refused_by_code).toSorted()).toEqual(
    HOSTILE.map((code) => [code, 2]).toSorted(),
  );
  await admin.close();
});

it('plans and customers of the config file may have such names; __proto__ is refused with its line', async () => {
  const config =
    await load(`${MINIMAL}plans: { constructor: { requests_per_hour: 5 }, toString: { requests_per_hour: 6 } }
overrides: { constructor: { requests_per_hour: 7 } }\n`);
  expect(config.plans.get('constructor')).toEqual({ requestsPerHour: 5 });
  expect(config.plans.get('toString')).toEqual({ requestsPerHour: 6 });
  expect(config.overrides.get('constructor')).toEqual({ requestsPerHour: 7 });
  for (const section of ['plans', 'overrides']) {
    expect(await problemsOf(`${MINIMAL}${section}:\n  __proto__: { requests_per_hour: 5 }\n`)).toEqual([
      `gateway.yaml:4: ${section}.__proto__: is a name that cannot be used; choose another`,
    ]);
  }
});

it('a customer and a plan named constructor are served, shown and exported', async () => {
  const { gateway, key } = await startSystem({
    config: { plans: { constructor: { requests_per_hour: 5 }, toString: { requests_per_hour: 6 } } },
    customer: { id: 'constructor', plan: 'constructor' },
  });
  const response = await fetch(`${gateway.public}/api/v1/conversations`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(response.headers.get('ratelimit')).toContain('r=4');
  const { body } = await callAdmin(gateway, '/admin/v1/customers/constructor');
  expect(body).toMatchObject({ plan: 'constructor', limit: 5, limit_source: 'plan' });
  const refused = await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'valueOf', plan: 'valueOf' } });
  expect(refused.status).toBe(422);
});

it.each(HOSTILE)('the console explains the refusal code %s as one that it does not know', (code) => {
  expect(refusalOf(code)).toEqual(refusalOf('a-code-that-does-not-exist'));
});
