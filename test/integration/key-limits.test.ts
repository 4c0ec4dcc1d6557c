/** The limit of one key under that of its customer, as clients and operators notice it. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bearer, callAdmin, postPreview } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { customerName, keyName, startRedisSystem, windowName, writeKey } from '../support/redis-system.ts';
import { startSystem } from '../support/system.ts';

const LIMIT = 60;
const OF_KEY = 25;
const PATIENCE = { timeout: 30_000, interval: 50 };

async function read({ public: url }: Pick<TestGateway, 'public'>, key: string) {
  const response = await fetch(`${url}/v1/conversations`, { headers: bearer(key) });
  const text = await response.text();
  // biome-ignore lint/suspicious/noExplicitAny: the tests compare members of every type, and a wrong one fails them
  const body: any = response.status === 200 ? undefined : JSON.parse(text);
  return { status: response.status, headers: response.headers, body };
}

/** Sends requests with a key until so many were admitted, then more that must not be. Resolves to the last refusal. */
async function useUp(gateways: readonly TestGateway[], key: string, most: number) {
  let admitted = 0;
  const send = async (count: number) => {
    const sent = Array.from({ length: count }, (_, i) => read(gateways[i % gateways.length] as TestGateway, key));
    const responses = await Promise.all(sent);
    admitted += responses.filter(({ status }) => status === 200).length;
    return responses.at(-1);
  };
  await send(most);
  // Units of open leases come back first.
  await expect.poll(async () => (await send(gateways.length)) && admitted, PATIENCE).toBeGreaterThanOrEqual(most);
  const last = await send(20);
  expect(admitted).toBe(most);
  return last;
}

async function createKey(gateway: TestGateway, customer: string, body: object) {
  const { status, body: created } = await callAdmin(gateway, `/admin/v1/customers/${customer}/keys`, { body });
  if (status !== 201) throw new Error(`key not created: ${JSON.stringify(created)}`);
  return created;
}

const keyCall = (gateway: TestGateway, method: string, id: string, body?: object, at = '') =>
  callAdmin(gateway, `/admin/v1/keys/${encodeURIComponent(id)}${at}`, { method, ...(body && { body }) });

test('two gateways admit exactly the limit of a key, then exactly that of its customer: what the key refused used nothing', async () => {
  const { backend, gateway, gateways, redis, key } = await startRedisSystem({
    gateways: 2,
    customer: { plan: 'enterprise', requests_per_hour: LIMIT },
  });
  const { id, key: limited } = await createKey(gateway, 'acme', { requests_per_hour: OF_KEY });
  const { headers: first } = await read(gateway, limited);
  expect(first.get('ratelimit-policy')).toBe(`"hourly";q=${LIMIT};w=3600, "key";q=${OF_KEY};w=3600`);
  expect(first.get('x-ratelimit-limit')).toBe(String(OF_KEY));
  const refused = await useUp(gateways, limited, OF_KEY - 1);
  expect(refused).toMatchObject({
    status: 429,
    body: {
      code: 'quota_exceeded',
      'violated-policies': ['key'],
      detail: expect.stringMatching(
        /^All 25 requests of the last hour with this API key are used\. The account has \d+ left\. /,
      ),
    },
  });
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);

  // A key without a limit can use the rest, and no more.
  const ofAccount = await useUp(gateways, key, LIMIT - OF_KEY);
  expect(ofAccount?.body).toMatchObject({ 'violated-policies': ['hourly'] });
  expect(backend.seen.length).toBe(LIMIT);
  const { body: both } = await read(gateway, limited);
  expect(both['violated-policies']).toEqual(expect.arrayContaining(['key']));
  const usedOf = async (name: string) => Number(String(await redis.command('HGET', name, 'head')).split(' ')[1]);
  await expect.poll(() => usedOf(`${windowName('acme')}:${id}`), PATIENCE).toBe(OF_KEY);
  await expect.poll(() => usedOf(windowName('acme')), PATIENCE).toBe(LIMIT);

  const denied = Object.entries(await readMetric(gateway, 'tollgate_quota_decisions_total'));
  expect(denied.some(([labels]) => labels.includes('policy="key",outcome="denied"'))).toBe(true);
  const metrics = await (await fetch(`${gateway.ops}/metrics`)).text();
  expect(metrics).not.toContain(id);
});

test('twenty rotations under load keep the window: no more is admitted than the limit', async () => {
  const { gateway, gateways } = await startRedisSystem({ gateways: 2, customer: { plan: 'starter' } });
  let { id, key } = await createKey(gateway, 'acme', { requests_per_hour: OF_KEY });
  const keys: string[] = [key];
  let admitted = 0;
  let isOver = false;
  const load = Promise.all(
    gateways.map(async (each) => {
      for (let i = 0; !isOver; i++) {
        const { status } = await read(each, keys[i % keys.length] ?? key);
        if (status === 200) admitted++;
        else expect(status).toBe(429);
      }
    }),
  );
  for (let i = 0; i < 20; i++) {
    const { status, body } = await keyCall(gateway, 'POST', id, {}, '/rotate');
    expect(status).toBe(201);
    expect(body.requests_per_hour).toBe(OF_KEY);
    ({ id, key } = body);
    keys.push(key);
  }
  isOver = true;
  await load;
  await useUp(gateways, key, OF_KEY - admitted);
  for (const each of keys) expect((await read(gateway, each)).status).toBe(429);
  expect((await keyCall(gateway, 'GET', id, undefined, '/usage')).body).toMatchObject({ limit: OF_KEY, remaining: 0 });
});

test('a limit that is lowered under load refuses what exceeds the new one', async () => {
  const { gateway, key: other } = await startSystem();
  const { id, key } = await createKey(gateway, 'acme', { requests_per_hour: 900 });
  for (let i = 0; i < 30; i++) expect((await read(gateway, key)).status).toBe(200);
  let refused: Awaited<ReturnType<typeof read>> | undefined;
  let admittedAfterwards = 0;
  let isOver = false;
  const load = (async () => {
    while (!isOver) {
      const response = await read(gateway, key);
      if (response.status !== 200) refused = response;
      else if (refused) admittedAfterwards++;
    }
  })();
  expect((await keyCall(gateway, 'PATCH', id, { requests_per_hour: 20 })).body).toMatchObject({
    requests_per_hour: 20,
  });
  await expect.poll(() => refused?.headers.get('x-ratelimit-limit'), PATIENCE).toBe('20');
  for (let i = 0; i < 20; i++) expect((await read(gateway, key)).status).toBe(429);
  isOver = true;
  await load;
  expect(admittedAfterwards).toBe(0);
  expect((await read(gateway, other)).status).toBe(200);
  // A preview is about customers: this one is far from its limit.
  const lower = `${readFileSync(gateway.file, 'utf8')}plans: { starter: { requests_per_hour: 900 } }\n`;
  const { body: preview } = await postPreview(gateway, lower);
  expect(preview.customers).toMatchObject({ lowered: 1, refused: 0, near: 0 });
  expect(preview.limits).toMatchObject([{ window: 'hourly', refused: 0 }]);
  // What it used counts under the next limit, too.
  await keyCall(gateway, 'PATCH', id, { requests_per_hour: 10_000 });
  await expect.poll(async () => (await read(gateway, key)).status, PATIENCE).toBe(200);
  expect((await keyCall(gateway, 'GET', id, undefined, '/usage')).body.used).toBeGreaterThan(30);
});

test('whatever another program writes, a key uses its own window, and one with an unreadable limit is refused', async () => {
  const { backend, gateway, redis, key } = await startRedisSystem({ customer: { plan: 'starter' } });
  await redis.command('HSET', customerName('victim'), 'plan', 'starter');
  const write = async (value: string, fields: Record<string, string>) => {
    await writeKey(redis, value, 'acme');
    await redis.command('HSET', keyName(value), ...Object.entries(fields).flat());
    if (fields.id) await redis.command('SET', `tollgate:key-id:${fields.id}`, keyName(value).slice(-64));
  };
  const id = 'a}:{victim}:b';
  await write('hostile-id', { id, requests_per_hour: '3' });
  await write('hostile-root', { root: '}:{victim}:window', requests_per_hour: '3', name: 'a\n}:{b' });
  for (const value of ['hostile-id', 'hostile-root']) await useUp([gateway], value, 3);
  const uses = await keyCall(gateway, 'GET', id, undefined, '/usage');
  expect(uses.body).toMatchObject({ limit: 3, used: 3, remaining: 0, window_seconds: 3600 });
  expect((await keyCall(gateway, 'DELETE', id, undefined, '/usage')).status).toBe(204);
  await expect.poll(async () => (await read(gateway, 'hostile-id')).status, PATIENCE).toBe(200);
  expect((await read(gateway, 'hostile-root')).status).toBe(429);
  expect((await callAdmin(gateway, '/admin/v1/customers/victim/usage')).body).toMatchObject({ used: 0 });

  const sent = backend.seen.length;
  const odd = {
    word: { requests_per_hour: 'ten' },
    none: { requests_per_hour: '0' },
    half: { requests_per_hour: '1.5' },
  };
  for (const [value, fields] of Object.entries({ ...odd, newline: { requests_per_hour: '5', root: 'a\nb' } })) {
    await write(`unreadable-${value}`, fields);
    expect(await read(gateway, `unreadable-${value}`)).toMatchObject({
      status: 403,
      body: { code: 'quota_not_configured' },
    });
  }
  expect(backend.seen.length).toBe(sent);
  // A root without a limit is never used; to set a limit then would refuse the key.
  await write('odd-root', { id: 'odd-root', root: 'a\nb' });
  expect((await read(gateway, 'odd-root')).status).toBe(200);
  expect((await keyCall(gateway, 'PATCH', 'odd-root', { requests_per_hour: 5 })).status).toBe(409);
  await write('unreadable', { id: 'unreadable', requests_per_hour: 'ten' });
  expect((await keyCall(gateway, 'GET', 'unreadable')).body).toMatchObject({ requests_per_hour: 0, used: null });
  for (const [method, at] of [
    ['GET', '/usage'],
    ['DELETE', '/usage'],
  ] as const)
    expect((await keyCall(gateway, method, 'unreadable', undefined, at)).status).toBe(422);
  expect((await keyCall(gateway, 'POST', 'unreadable', {}, '/rotate')).status).toBe(409);
  expect((await keyCall(gateway, 'PATCH', 'unreadable', { requests_per_hour: 5 })).status).toBe(200);
  await expect.poll(async () => (await read(gateway, 'unreadable')).status, PATIENCE).toBe(200);
  expect((await read(gateway, key)).status).toBe(200);
});
