/** Temporary limits and suspensions: they end by themselves, in every instance, at that moment. */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { startShared } from '../support/cleanup.ts';
import { STORES, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { customerName, startRedisSystem, writeCustomer, writeKey } from '../support/redis-system.ts';
import { startSystem } from '../support/system.ts';

/** Long enough for what a test does before, on a busy machine. */
const SOON_MS = 5000;
/** Within which a gateway has written to the store who is near its limit. */
const USAGE_WRITTEN_MS = 12_000;
/** For the time that a reading of the store's clock takes. */
const MARGIN_MS = 100;
const HOUR_MS = 3_600_000;
/** A store that a busy machine delays is away: the gateway would then admit by its own share of the limit. */
const config = { store: { timeout_ms: 5000 } };

const timeIn = (ms: number) => new Date(Date.now() + ms).toISOString();
const moment = (time: string) => setTimeout(Math.max(0, Date.parse(time) + MARGIN_MS - Date.now()));
const patch = (gateway: TestGateway, body: object) =>
  callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body });
const documentOf = async (gateway: TestGateway) => (await callAdmin(gateway, '/admin/v1/customers/acme')).body;
const explain = async (gateway: TestGateway) => (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body;

async function request(gateway: Pick<TestGateway, 'public'>, key: string) {
  const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  await response.arrayBuffer();
  return response;
}

async function send(gateway: Pick<TestGateway, 'public'>, key: string) {
  const response = await request(gateway, key);
  return [response.status, Number(response.headers.get('x-ratelimit-limit'))] as const;
}

describe.each(STORES)('over $name', (store) => {
  const customer = { id: 'acme', plan: 'starter', requests_per_hour: 3 };
  const unchanged = startShared(() => startSystem({ store, config }));

  it('a higher limit for a time admits more at once, and when it ends, what it covered applies at once', async () => {
    const { gateway, key } = await startSystem({ store, config, customer });
    for (let i = 0; i < 3; i++) expect(await send(gateway, key)).toEqual([200, 3]);
    expect(await send(gateway, key)).toEqual([429, 3]);

    const until = timeIn(SOON_MS);
    const { body } = await patch(gateway, { temporary_limit: { requests_per_hour: 2000, until } });
    const shown = { limit: 2000, limit_source: 'temporary', limit_until: until, limit_then: 3 };
    expect(body).toMatchObject({ ...shown, requests_per_hour: 3, temporary_limit: { requests_per_hour: 2000, until } });
    // The refusal that was remembered ends with the change, and units of a lease serve the next requests.
    await expect.poll(() => send(gateway, key), { interval: 10 }).toEqual([200, 2000]);
    for (let i = 0; i < 20; i++) expect(await send(gateway, key)).toEqual([200, 2000]);
    expect(await explain(gateway)).toMatchObject({ ...shown, origin: 'customer record: temporary_limit' });
    const { items } = (await callAdmin(gateway, '/admin/v1/usage')).body;
    expect(items).toMatchObject([{ limit: 2000, limit_source: 'temporary' }]);

    await moment(until);
    expect(await send(gateway, key)).toEqual([429, 3]);
    const ended = { limit: 3, limit_source: 'customer', limit_until: null, limit_then: null, temporary_limit: null };
    expect(await documentOf(gateway)).toMatchObject(ended);
    expect(await explain(gateway)).toMatchObject({ limit: 3, instance: { leases: [] } });
    const { body: audit } = await callAdmin(gateway, '/admin/v1/audit?action=customer.update');
    expect(audit.items).toMatchObject([{ details: { temporary_limit: `2000 until ${until}` } }]);
  });

  it('a refusal by a lower limit for a time is forgotten the moment it ends', async () => {
    const { gateway, key } = await startSystem({ store, config, customer: { id: 'acme', plan: 'starter' } });
    const until = timeIn(SOON_MS);
    await patch(gateway, { temporary_limit: { requests_per_hour: 1, until } });
    expect(await send(gateway, key)).toEqual([200, 1]);
    expect(await send(gateway, key)).toEqual([429, 1]);
    await moment(until);
    expect(await send(gateway, key)).toEqual([200, 1000]);
  });

  it('a client that a lower limit for a time refuses waits at most until its end, and is admitted then', async () => {
    const { gateway, key } = await startSystem({ store, config, customer: { id: 'acme', plan: 'starter' } });
    const until = timeIn(SOON_MS);
    await patch(gateway, { temporary_limit: { requests_per_hour: 1, until } });
    expect(await send(gateway, key)).toEqual([200, 1]);
    expect((await explain(gateway)).verdict).toMatch(/the hourly limit is used up; more in [1-6] s/);
    // Refused by the store, and then from memory.
    for (let i = 0; i < 2; i++) {
      const refused = await request(gateway, key);
      expect(refused.status).toBe(429);
      const seconds = Number(refused.headers.get('retry-after'));
      expect(seconds).toBeLessThanOrEqual(Math.ceil((SOON_MS + MARGIN_MS) / 1000) + 1);
      expect(Date.now() + 1000 * seconds).toBeGreaterThan(Date.parse(until));
      expect(refused.headers.get('ratelimit')).toContain(`r=0;t=${seconds}`);
      if (i === 1) await setTimeout(1000 * seconds);
    }
    expect(await send(gateway, key)).toEqual([200, 1000]);
  });

  it('a client is not told to come back at an end that leaves it without free units', async () => {
    const { gateway, key } = await startSystem({ store, config, customer: { ...customer, requests_per_hour: 2 } });
    for (let i = 0; i < 2; i++) expect(await send(gateway, key)).toEqual([200, 2]);
    await patch(gateway, { temporary_limit: { requests_per_hour: 1, until: timeIn(SOON_MS) } });
    await expect.poll(() => send(gateway, key)).toEqual([429, 1]);
    const refused = await request(gateway, key);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000);
  });

  it('the audit has both members of a suspension, with the end that a reactivation removes', async () => {
    const { gateway } = await startSystem({ store, config });
    const until = timeIn(HOUR_MS);
    for (const body of [
      { suspended_until: until },
      { suspended: true },
      { suspended_until: until },
      { suspended: false },
    ]) {
      await patch(gateway, body);
    }
    const { body: audit } = await callAdmin(gateway, '/admin/v1/audit?action=customer.update');
    expect(audit.items.map(({ details, before }: Record<string, unknown>) => ({ details, before })).reverse()).toEqual([
      { details: { suspended: true, suspended_until: until }, before: { suspended: false, suspended_until: null } },
      { details: { suspended: true, suspended_until: null }, before: { suspended_until: until } },
      { details: { suspended: true, suspended_until: until }, before: { suspended_until: null } },
      { details: { suspended: false, suspended_until: null }, before: { suspended: true, suspended_until: until } },
    ]);
  });

  it('a temporary limit can be removed early, and its absence changes nothing', async () => {
    const { gateway } = await startSystem({ store, config, customer });
    await patch(gateway, { temporary_limit: { requests_per_hour: 5, until: timeIn(HOUR_MS) } });
    expect(await patch(gateway, { temporary_limit: null })).toMatchObject({ status: 200, body: { limit: 3 } });
    await patch(gateway, { temporary_limit: null });
    const { body: audit } = await callAdmin(gateway, '/admin/v1/audit?action=customer.update');
    expect(audit.items).toHaveLength(2);
  });

  it('a suspension ends by itself, is found until then, and one without an end replaces it', async () => {
    const { gateway, key } = await startSystem({ store, config });
    const suspended = async () => (await callAdmin(gateway, '/admin/v1/customers?suspended=true')).body.items.length;
    const until = timeIn(SOON_MS);
    expect((await patch(gateway, { suspended_until: until })).body).toMatchObject({
      suspended: true,
      suspended_until: until,
    });
    await expect.poll(() => send(gateway, key)).toEqual([403, 0]);
    expect(await suspended()).toBe(1);
    expect((await explain(gateway)).verdict).toContain(`the customer is suspended until ${until}`);
    await moment(until);
    expect(await send(gateway, key)).toEqual([200, 1000]);
    expect(await suspended()).toBe(0);
    expect(await documentOf(gateway)).toMatchObject({ suspended: false, suspended_until: null });

    expect((await patch(gateway, { suspended: true })).body).toMatchObject({ suspended: true, suspended_until: null });
    await expect.poll(() => send(gateway, key)).toEqual([403, 0]);
    await patch(gateway, { suspended_until: timeIn(HOUR_MS) });
    expect((await patch(gateway, { suspended: false })).body).toMatchObject({
      suspended: false,
      suspended_until: null,
    });
    await expect.poll(() => send(gateway, key)).toEqual([200, 1000]);
  });

  it.each([
    [
      'a limit of 0',
      { temporary_limit: { requests_per_hour: 0, until: timeIn(HOUR_MS) } },
      'temporary_limit.requests_per_hour',
    ],
    ['a limit without an end', { temporary_limit: { requests_per_hour: 5 } }, 'temporary_limit.until: missing'],
    ['an end in the past', { temporary_limit: { requests_per_hour: 5, until: timeIn(-1) } }, 'must be in the future'],
    ['a suspension that has ended', { suspended_until: timeIn(-1) }, 'suspended_until: must be in the future'],
    [
      'an end of no suspension',
      { suspended: false, suspended_until: timeIn(HOUR_MS) },
      'must not be given with suspended: false',
    ],
  ])('the admin API refuses %s', async (_, body, detail) => {
    const { gateway } = unchanged();
    expect(await patch(gateway, body)).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining(detail) },
    });
  });
});

it('notices and the list of customers near their limits go by the temporary limit until it ends', async () => {
  const receiver = await startNoticeReceiver();
  const { gateway, key } = await startRedisSystem({ config: { ...config, notices: receiver.config } });
  const near = async () => (await callAdmin(gateway, '/admin/v1/usage/near?above=80')).body;
  const until = timeIn(USAGE_WRITTEN_MS + SOON_MS);
  await patch(gateway, { temporary_limit: { requests_per_hour: 10, until } });
  await expect.poll(async () => (await explain(gateway)).limit).toBe(10);
  for (let i = 0; i < 9; i++) expect(await send(gateway, key)).toEqual([200, 10]);
  const usage = { customer: 'acme', limit: 10, used: 9, percent: 90 };
  await expect.poll(near, { timeout: USAGE_WRITTEN_MS }).toMatchObject([usage]);
  expect(receiver.received.map(({ data }) => data)).toMatchObject([usage]);

  await moment(until);
  expect(await send(gateway, key)).toEqual([200, 1000]);
  expect(await near()).toEqual([]);
  expect(receiver.received).toHaveLength(1);
});

it('gateways whose clocks are an hour wrong, either way, end both at the same moment as the others', async () => {
  const { redis, backend, gateways, key } = await startRedisSystem({ config, customer: { plan: 'starter' } });
  const all = [...gateways];
  for (const offsetMs of [-HOUR_MS, HOUR_MS]) {
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs };
    const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url, config, clock });
    onTestFinished(() => gateway.close());
    all.push(gateway);
  }
  const answers = () => Promise.all(all.map((gateway) => send(gateway, key)));
  const untils = { temporary: timeIn(SOON_MS), suspended: timeIn(2 * SOON_MS) };
  const fields = { temporary_requests_per_hour: '7', temporary_until: untils.temporary };
  await redis.command('HSET', customerName('acme'), ...Object.entries(fields).flat());
  await expect.poll(answers).toEqual(Array(3).fill([200, 7]));
  await moment(untils.temporary);
  expect(await answers()).toEqual(Array(3).fill([200, 1000]));

  await redis.command('HSET', customerName('acme'), 'suspended', '1', 'suspended_until', untils.suspended);
  await expect.poll(answers).toEqual(Array(3).fill([403, 0]));
  await moment(untils.suspended);
  expect(await answers()).toEqual(Array(3).fill([200, 1000]));
});

describe('a dashboard that writes the fields badly', () => {
  const NAMED = 'a record in the store is damaged: repair it; "tollgate store check" lists all damaged records';
  const tomorrow = timeIn(24 * HOUR_MS);
  const started = startShared(() => startRedisSystem({ config }));
  let customers = 0;

  it.each([
    [{ temporary_requests_per_hour: '0', temporary_until: tomorrow }, [200, 1000], 'unreadable_temporary_limit'],
    [{ temporary_requests_per_hour: '-1', temporary_until: tomorrow }, [200, 1000], 'unreadable_temporary_limit'],
    [{ temporary_requests_per_hour: '1e9', temporary_until: tomorrow }, [200, 1000], 'unreadable_temporary_limit'],
    [{ temporary_requests_per_hour: '7' }, [200, 1000], 'unreadable_temporary_limit'],
    [{ temporary_until: tomorrow }, [200, 1000], 'unreadable_temporary_limit'],
    [{ temporary_requests_per_hour: '7', temporary_until: 'tomorrow' }, [200, 1000], 'unreadable_temporary_limit'],
    [{ temporary_requests_per_hour: '7', temporary_until: '2020-01-01T00:00:00Z' }, [200, 1000], undefined],
    [{ temporary_requests_per_hour: '1000000000', temporary_until: tomorrow }, [200, 1_000_000_000], undefined],
    [{ suspended: '1', suspended_until: 'tomorrow' }, [403, 0], 'unreadable_time'],
    [{ suspended: '1', suspended_until: '2020-01-01T00:00:00Z' }, [200, 1000], undefined],
    [{ suspended: '1', suspended_until: '' }, [403, 0], undefined],
    // As the dashboards do that know nothing of `suspended_until`: they delete or unset `suspended`.
    [{ suspended_until: tomorrow }, [200, 1000], undefined],
    [{ suspended: '0', suspended_until: tomorrow }, [200, 1000], undefined],
  ])('%j: %j, and the operator is told of %s', async (fields, answer, fault) => {
    const { redis, gateway } = started();
    customers += 1;
    const customer = `customer-${customers}`;
    const key = `key-of-${customer}`;
    const count = () => readMetric(gateway, 'tollgate_damaged_records_total');
    const before = await count();
    const linesBefore = gateway.logs.length;
    await writeCustomer(redis, customer, { plan: 'starter' });
    await writeKey(redis, key, customer);
    await redis.command('HSET', customerName(customer), ...Object.entries(fields).flat());
    await expect.poll(() => send(gateway, key)).toEqual(answer);
    const named = gateway.logs.slice(linesBefore).filter(({ msg }) => msg === NAMED);
    expect(named.map((line) => line.fault)).toEqual(fault === undefined ? [] : [fault]);
    const after = await count();
    if (fault === undefined) expect(after).toEqual(before);
    else {
      const labels = `record="customer",fault="${fault}"`;
      expect(after[labels]).toBeGreaterThan(before[labels] ?? 0);
    }
  });
});
