import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createApiKey } from '../../src/formats/api-key.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { STORES, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

const LIST = '/api/v1/conversations';
const ONE = '/api/v1/conversations/{id}';

const answer: RequestListener = (req, res) => {
  if (req.url?.endsWith('/missing')) res.writeHead(404).end('no such thing');
  else if (req.url?.endsWith('/broken')) res.writeHead(500).end();
  else if (req.url?.endsWith('/reset')) res.destroy();
  else res.writeHead(200, { 'Content-Length': 11 }).end('{"data":[]}');
};

/** One request of every kind, with known results. Resolves to the number of requests. */
async function sendTraffic({ gateway, key }: TestSystem): Promise<number> {
  const small = await createCustomerWithKey(gateway, { id: 'small', plan: 'enterprise', requests_per_hour: 1 });
  const { body: revoked } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: {} });
  await callAdmin(gateway, `/admin/v1/keys/${revoked.id}`, { method: 'DELETE' });
  const generated = createApiKey();
  const mistyped = generated.slice(0, -1) + (generated.endsWith('a') ? 'b' : 'a');
  const withKey = (path: string, sent = key, method = 'GET') => [path, { method, headers: bearer(sent) }] as const;
  const traffic: (readonly [string, RequestInit])[] = [
    withKey('/v1/conversations'),
    withKey('/api/v1/conversations?q=1'),
    withKey('/v1/conversations', key, 'HEAD'),
    withKey('/v1/conversations/missing'),
    withKey('/v1/conversations/broken'),
    withKey('/v1/conversations/reset'),
    withKey('/v1/conversations', small),
    withKey('/v1/conversations', small),
    withKey('/v1/conversations/x', small, 'HEAD'),
    ['/v1/conversations', {}],
    ['/v1/conversations', { headers: { authorization: 'Bearer !' } }],
    withKey('/v1/conversations', 'made-elsewhere'),
    withKey('/v1/conversations', mistyped),
    withKey('/v1/conversations', revoked.key),
    withKey('/v1/nothing'),
    withKey('/wp-login.php', 'made-elsewhere'),
    withKey('/v1/conversations', key, 'DELETE'),
    withKey('/v1/conversations/%ff'),
  ];
  for (const [path, init] of traffic) await (await fetch(gateway.public + path, init)).text();
  await exchangeRaw(gateway.public, 'noise\r\n\r\n');
  return traffic.length + 1;
}

/** Records are finished a moment after the caller has its answer. */
async function settled(gateway: TestGateway, requests: number): Promise<void> {
  const total = async () =>
    Object.values(await readMetric(gateway, 'tollgate_http_requests_total')).reduce((sum, value) => sum + value, 0);
  await expect.poll(total).toBe(requests);
}

/** Whether a request met a lease depends on how fast the machine is. */
async function decisionsInAnyMode(gateway: TestGateway): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const [labels, count] of Object.entries(await readMetric(gateway, 'tollgate_quota_decisions_total'))) {
    const anyMode = labels.replace(/,mode="(lease|store)"$/, '');
    sums[anyMode] = (sums[anyMode] ?? 0) + count;
  }
  return sums;
}

describe.each(STORES)('metrics over $name', (store) => {
  it('count every request once, under what it was', async () => {
    const system = await startSystem({ store, answer });
    const { gateway, backend } = system;
    await settled(gateway, await sendTraffic(system));

    const request = (route: string, method: string, code: number, source: string, plan: string) =>
      `route="${route}",method="${method}",code="${code}",source="${source}",plan="${plan}"`;
    expect(await readMetric(gateway, 'tollgate_http_requests_total')).toEqual({
      [request(LIST, 'GET', 200, 'upstream', 'starter')]: 2,
      [request(LIST, 'HEAD', 200, 'upstream', 'starter')]: 1,
      [request(ONE, 'GET', 404, 'upstream', 'starter')]: 1,
      [request(ONE, 'GET', 500, 'upstream', 'starter')]: 1,
      [request(ONE, 'GET', 502, 'gateway', 'starter')]: 1,
      [request(LIST, 'GET', 200, 'upstream', 'enterprise')]: 1,
      [request(LIST, 'GET', 429, 'gateway', 'enterprise')]: 1,
      [request(ONE, 'HEAD', 429, 'gateway', 'enterprise')]: 1,
      [request(LIST, 'GET', 401, 'gateway', 'none')]: 4,
      [request(LIST, 'GET', 400, 'gateway', 'none')]: 1,
      [request('none', 'GET', 404, 'gateway', 'none')]: 2,
      [request(LIST, 'other', 405, 'gateway', 'none')]: 1,
      [request('none', 'GET', 400, 'gateway', 'none')]: 1,
      [request('none', 'other', 400, 'gateway', 'none')]: 1,
    });
    expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({
      'problem="bad_gateway",plan="starter"': 1,
      'problem="quota_exceeded",plan="enterprise"': 2,
      'problem="missing_key",plan="none"': 1,
      'problem="malformed_key",plan="none"': 1,
      'problem="invalid_key",plan="none"': 3,
      'problem="not_found",plan="none"': 2,
      'problem="method_not_allowed",plan="none"': 1,
      'problem="bad_request",plan="none"': 2,
    });
    expect(await readMetric(gateway, 'tollgate_auth_total')).toEqual({
      'result="valid"': 9,
      'result="missing"': 1,
      'result="in_query"': 0,
      'result="malformed"': 1,
      'result="checksum"': 1,
      'result="unknown"': 1,
      'result="revoked"': 1,
      'result="expired"': 0,
      'result="unusable"': 0,
      'result="store_error"': 0,
    });
    expect(await decisionsInAnyMode(gateway)).toEqual({
      'plan="starter",policy="hourly",outcome="allowed"': 6,
      // The only one that its limit allows.
      'plan="enterprise",policy="hourly",outcome="near"': 1,
      'plan="enterprise",policy="hourly",outcome="denied"': 2,
    });
    // What was reset is tried once more.
    expect(backend.seen).toHaveLength(8);
    expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
  });

  it('measure each request, and the backend only if the request was forwarded', async () => {
    const system = await startSystem({ store, answer });
    const { gateway } = system;
    await settled(gateway, await sendTraffic(system));
    expect(await readMetric(gateway, 'tollgate_request_duration_seconds_count')).toEqual({
      [`route="${LIST}",source="upstream"`]: 4,
      [`route="${ONE}",source="upstream"`]: 2,
      [`route="${LIST}",source="gateway"`]: 7,
      [`route="${ONE}",source="gateway"`]: 2,
      'route="none",source="gateway"': 3,
    });
    expect(await readMetric(gateway, 'tollgate_upstream_duration_seconds_count')).toEqual({
      [`backend="default",route="${LIST}"`]: 4,
      [`backend="default",route="${ONE}"`]: 3,
    });
    expect(await readMetric(gateway, 'tollgate_overhead_seconds_count')).toEqual({
      'source="upstream"': 6,
      'source="gateway"': 12,
    });
    // One read for each key and customer however often they come, none for a mistyped key; the admin API reads for itself.
    const calls = await readMetric(gateway, 'tollgate_store_calls_total');
    expect(calls).toMatchObject({
      'op="read_key"': 4,
      'op="read_customer"': 5,
      'op="create_customer"': 2,
      'op="create_key"': 3,
      'op="revoke_key"': 1,
    });
    expect(calls['op="reserve"']).toBeLessThanOrEqual(9);
    expect(await readMetric(gateway, 'tollgate_store_command_duration_seconds_count')).toEqual(
      await readMetric(gateway, 'tollgate_store_calls_total'),
    );
    expect(await readMetric(gateway, 'tollgate_store_up')).toEqual({ '': 1 });
    expect(await readMetric(gateway, 'tollgate_degraded')).toEqual({ '': 0 });
  });

  it('show the ten customers that have used most of their limits', async () => {
    const { gateway } = await startSystem({ store });
    const limits = Array.from({ length: 12 }, (_, i) => 2 + i);
    for (const limit of limits) {
      const customer = { id: `of-${limit}`, plan: 'enterprise', requests_per_hour: limit };
      const key = await createCustomerWithKey(gateway, customer);
      await (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).text();
    }
    const highest = limits.slice(0, 10).map((limit) => [`customer="of-${limit}"`, 1 / limit]);
    expect(await readMetric(gateway, 'tollgate_customer_usage_ratio')).toEqual(Object.fromEntries(highest));
  });

  it('name the running configuration as the status does', async () => {
    const { gateway } = await startSystem({ store });
    const { body } = await callAdmin(gateway, '/status');
    expect(await readMetric(gateway, 'tollgate_config_info')).toEqual({ [`hash="${body.config.hash}"`]: 1 });
    const [loadedAt] = Object.values(await readMetric(gateway, 'tollgate_config_last_success_timestamp_seconds'));
    expect(loadedAt).toBe(Date.parse(body.config.loaded_at) / 1000);
    const [build = ''] = Object.keys(await readMetric(gateway, 'tollgate_build_info'));
    expect(build).toBe(`version="${body.version}",node="${process.version}"`);
  });
});

it('requests in progress are counted as such', async () => {
  const arrived = Promise.withResolvers<() => void>();
  const system = await startSystem({ answer: (_req, res) => arrived.resolve(() => void res.end()) });
  const { gateway, key } = system;
  const underWay = fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  const release = await arrived.promise;
  expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
  release();
  await underWay;
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
});

describe('the access log', () => {
  const lines = (gateway: TestGateway) => gateway.logs.filter(({ msg }) => msg === 'request');

  it('has one line a request, with what became known of it', async () => {
    const system = await startSystem({ answer });
    const { gateway } = system;
    const requests = await sendTraffic(system);
    await settled(gateway, requests);
    expect(lines(gateway)).toHaveLength(requests);
    const [first, , head] = lines(gateway);
    expect(first).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: 'request',
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      method: 'GET',
      route: LIST,
      status: 200,
      source: 'upstream',
      customer: 'acme',
      plan: 'starter',
      key_id: expect.stringMatching(/^key_/),
      key_header: 'Authorization',
      client: '127.0.0.1',
      duration_ms: expect.any(Number),
      upstream_ms: expect.any(Number),
      overhead_ms: expect.any(Number),
      backend: 'default',
      upstream: new URL(system.backend.url).host,
      quota: 'store',
      bytes: 11,
    });
    expect(Number(first?.upstream_ms)).toBeLessThanOrEqual(Number(first?.duration_ms));
    expect(head).toMatchObject({ method: 'HEAD', bytes: 0 });
    const denied = lines(gateway).filter(({ code }) => code === 'quota_exceeded');
    expect(denied).toHaveLength(2);
    expect(denied[0]).toMatchObject({ status: 429, source: 'gateway', customer: 'small', quota: 'store' });
    for (const member of ['upstream_ms', 'upstream']) expect(denied[0]).not.toHaveProperty(member);
    const anonymous = lines(gateway).filter(({ code }) => code === 'missing_key');
    expect(anonymous).toHaveLength(1);
    for (const member of ['customer', 'plan', 'key_id', 'quota']) expect(anonymous[0]).not.toHaveProperty(member);
    expect(new Set(lines(gateway).map(({ request_id }) => request_id)).size).toBe(requests);
  });

  it("carries the client's request id, as the response and the backend's request do", async () => {
    const { gateway, backend, key } = await startSystem();
    const headers = { ...bearer(key), 'X-Request-Id': 'order-4711' };
    const res = await fetch(`${gateway.public}/v1/conversations`, { headers });
    expect(res.headers.get('x-request-id')).toBe('order-4711');
    expect(backend.seen[0]?.headers['x-request-id']).toBe('order-4711');
    await expect.poll(() => lines(gateway)).toMatchObject([{ request_id: 'order-4711' }]);
  });

  it('names the trace of a request, and the backend gets its context as it was sent', async () => {
    const { gateway, backend, key } = await startSystem();
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const context = { traceparent: `00-${trace}-00f067aa0ba902b7-01`, tracestate: 'vendor=1,other=a b' };
    const send = (headers: Record<string, string>) =>
      fetch(`${gateway.public}/v1/conversations`, { headers: { ...bearer(key), ...headers } });
    await send(context);
    await send({ traceparent: 'mine' });
    expect(backend.seen[0]?.headers).toMatchObject(context);
    expect(backend.seen[1]?.headers).toMatchObject({ traceparent: 'mine' });
    await expect.poll(() => lines(gateway)).toHaveLength(2);
    expect(lines(gateway)[0]).toMatchObject({ trace_id: trace });
    expect(lines(gateway)[1]).not.toHaveProperty('trace_id');
  });

  it('has refusals and failures only with access: errors', async () => {
    const system = await startSystem({ answer, config: { logging: { access: 'errors' } } });
    await settled(system.gateway, await sendTraffic(system));
    const logged = lines(system.gateway).map(({ status, source }) => `${status} ${source}`);
    expect(logged.toSorted()).toEqual(
      [
        '500 upstream',
        '502 gateway',
        ...Array(2).fill('429 gateway'),
        ...Array(4).fill('401 gateway'),
        ...Array(3).fill('400 gateway'),
        ...Array(2).fill('404 gateway'),
        '405 gateway',
      ].toSorted(),
    );
  });

  it('is silent with access: off, while what operators must know is still logged', async () => {
    const system = await startSystem({ answer, config: { logging: { access: 'off' } } });
    await settled(system.gateway, await sendTraffic(system));
    expect(lines(system.gateway)).toEqual([]);
    expect(system.gateway.logs).toContainEqual(expect.objectContaining({ msg: 'upstream failed', failure: 'reset' }));
  });

  it('does not depend on the level of the rest', async () => {
    const system = await startSystem({ answer, config: { logging: { level: 'error' } } });
    const requests = await sendTraffic(system);
    await settled(system.gateway, requests);
    expect(lines(system.gateway)).toHaveLength(requests);
    expect(system.gateway.logs.filter(({ actor }) => actor === undefined)).toHaveLength(requests);
  });
});
