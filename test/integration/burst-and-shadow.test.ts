/** What a plan may say besides its hour: a burst limit that refuses, and a shadow limit that never does. */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey, type NewCustomer } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';

const BURST = 5;

interface System {
  readonly backend: Backend;
  readonly gateway: TestGateway;
  readonly key: string;
}

async function start(plan: Record<string, unknown>, customer: Partial<NewCustomer> = {}): Promise<System> {
  const embedded = STORES.at(-1);
  if (embedded === undefined) throw new Error('no store');
  const store = await embedded.start();
  onTestFinished(() => store.close());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const config = { plans: { tried: { requests_per_hour: 100, ...plan } } };
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url, config });
  onTestFinished(() => gateway.close());
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'tried', ...customer });
  // The key and the customer are known from here on, so that what is sent at once is decided at once.
  await fetch(`${gateway.public}/v1/usage`, { headers: bearer(key) });
  return { backend, gateway, key };
}

function read({ gateway, key }: System): Promise<Response> {
  return fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
}

function readAtOnce(system: System, count: number): Promise<Response[]> {
  return Promise.all(Array.from({ length: count }, () => read(system)));
}

async function readOneByOne(system: System, count: number): Promise<Response[]> {
  const answers = [];
  for (let i = 0; i < count; i++) answers.push(await read(system));
  return answers;
}

function withStatus(answers: readonly Response[], status: number): Response[] {
  return answers.filter((answer) => answer.status === status);
}

test('what goes beyond burst_per_second is refused under a policy of its own, and costs nothing of the hour', async () => {
  const system = await start({ burst_per_second: BURST });
  const answers = await readAtOnce(system, BURST + 3);
  expect(withStatus(answers, 200)).toHaveLength(BURST);
  const refused = withStatus(answers, 429);
  expect(refused).toHaveLength(3);
  expect(system.backend.seen).toHaveLength(BURST);

  for (const { headers } of refused) {
    const retryAfter = Number(headers.get('retry-after'));
    expect([1, 2]).toContain(retryAfter);
    expect(headers.get('ratelimit-policy')).toBe('"hourly";q=100;w=3600, "burst";q=5;w=1');
    expect(headers.get('ratelimit')).toBe(`"burst";r=0;t=${retryAfter}`);
    expect(headers.get('x-ratelimit-limit')).toBe(String(BURST));
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
    expect(Number(headers.get('x-ratelimit-reset'))).toBeGreaterThan(Date.now() / 1000 - 5);
    expect(headers.get('content-type')).toBe('application/problem+json');
  }
  expect(await refused[0]?.json()).toMatchObject({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    status: 429,
    code: 'burst_exceeded',
    'violated-policies': ['burst'],
  });
  const usage = await callAdmin(system.gateway, '/admin/v1/customers/acme/usage');
  expect(usage.body).toMatchObject({ used: BURST, remaining: 100 - BURST });
  expect(await readMetric(system.gateway, 'tollgate_quota_decisions_total')).toMatchObject({
    'plan="tried",policy="burst",outcome="denied",mode="lease"': 3,
  });
});

test('the response to an admitted request has both policies', async () => {
  const system = await start({ burst_per_second: BURST });
  const { headers } = await read(system);
  expect(headers.get('ratelimit-policy')).toBe('"hourly";q=100;w=3600, "burst";q=5;w=1');
  expect(headers.get('ratelimit')).toMatch(/^"hourly";r=99;t=\d+, "burst";r=4;t=1$/);
  expect(headers.get('x-ratelimit-limit')).toBe('100');
  expect(headers.get('x-ratelimit-remaining')).toBe('99');
});

test('a client that waits for the Retry-After of a refused burst, alone, is admitted', async () => {
  const system = await start({ burst_per_second: BURST });
  const [refused] = withStatus(await readAtOnce(system, BURST + 1), 429);
  await setTimeout(1000 * Number(refused?.headers.get('retry-after')));
  expect((await read(system)).status).toBe(200);
  expect(system.backend.seen).toHaveLength(BURST + 1);
});

test('a burst is refused for as long as the hour is used up', async () => {
  const system = await start({ burst_per_second: BURST, requests_per_hour: BURST });
  const [refused] = withStatus(await readAtOnce(system, BURST + 1), 429);
  expect(await refused?.json()).toMatchObject({ code: 'burst_exceeded' });
  // The units of the others are known to be the last ones once the store has replied.
  const later = withStatus(await readAtOnce(system, 1), 429)[0];
  expect(await later?.json()).toMatchObject({ code: 'burst_exceeded' });
  expect(Number(later?.headers.get('retry-after'))).toBeGreaterThan(3500);
});

test('a used-up quota is reported before a burst: requests that the quota refuses are no part of a burst', async () => {
  const system = await start({ burst_per_second: BURST, requests_per_hour: 2 });
  const answers = await readOneByOne(system, 2 + 2 * BURST);
  expect(withStatus(answers, 200)).toHaveLength(2);
  const refused = withStatus(answers, 429);
  expect(refused).toHaveLength(2 * BURST);
  for (const answer of refused) {
    expect(await answer.json()).toMatchObject({ code: 'quota_exceeded', 'violated-policies': ['hourly'] });
  }
});

test('a shadow limit refuses no request, and is counted and logged where it would have', async () => {
  const system = await start({ shadow: { requests_per_hour: 3 } });
  const answers = await readOneByOne(system, 8);
  expect(withStatus(answers, 200)).toHaveLength(8);
  expect(system.backend.seen).toHaveLength(8);
  for (const { headers } of answers) expect(headers.get('ratelimit-policy')).toBe('"hourly";q=100;w=3600');

  const decisions = await readMetric(system.gateway, 'tollgate_quota_decisions_total');
  const sumOf = (policy: string, outcome: string) =>
    Object.entries(decisions)
      .filter(([labels]) => labels.includes(`policy="${policy}",outcome="${outcome}"`))
      .reduce((sum, [, count]) => sum + count, 0);
  expect(sumOf('shadow', 'allowed')).toBe(3);
  expect(sumOf('shadow', 'shadow_denied')).toBe(5);
  expect(sumOf('hourly', 'allowed')).toBe(8);
  expect(sumOf('hourly', 'denied')).toBe(0);

  const lines = system.gateway.logs.filter(({ msg, route }) => msg === 'request' && route === '/api/v1/conversations');
  expect(lines.map(({ shadow }) => shadow)).toEqual([...Array(3).fill(undefined), ...Array(5).fill('denied')]);
});

test('a shadow limit tries out a plan, so customers with a limit of their own are not judged by it', async () => {
  const system = await start({ shadow: { requests_per_hour: 1 } }, { requests_per_hour: 50 });
  expect(withStatus(await readOneByOne(system, 4), 200)).toHaveLength(4);
  const decisions = await readMetric(system.gateway, 'tollgate_quota_decisions_total');
  expect(Object.keys(decisions).filter((labels) => labels.includes('policy="shadow"'))).toEqual([]);
  expect(system.gateway.logs.filter(({ shadow }) => shadow !== undefined)).toEqual([]);
});
