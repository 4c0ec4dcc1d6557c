import { describe, expect, it } from 'vitest';
import { bearer, createKey } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem, type TestSystem } from '../support/system.ts';

const MARKS = [{ Origin: 'https://shop.example' }, { 'Sec-Fetch-Site': 'cross-site' }];
const WARNING = 'an API key is used from a browser';

function start(browserKeys?: string): Promise<TestSystem> {
  return startSystem({ config: browserKeys === undefined ? {} : { auth: { browser_keys: browserKeys } } });
}

async function send({ gateway }: TestSystem, headers: Record<string, string>, path = '/v1/conversations') {
  const answer = await fetch(gateway.public + path, { headers });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

const warnings = ({ gateway }: TestSystem) => gateway.logs.filter(({ msg }) => String(msg).startsWith(WARNING));

describe('a valid key that a browser sends', () => {
  it.each(MARKS)('is served, counted and warned of by default: %o', async (mark) => {
    const system = await start();
    expect((await send(system, { ...bearer(system.key), ...mark })).status).toBe(200);
    expect(await readMetric(system.gateway, 'tollgate_browser_use_total')).toEqual({
      'plan="starter",outcome="allowed"': 1,
    });
    const keyId = system.backend.seen[0]?.headers['x-tollgate-key-id'];
    expect(warnings(system)).toEqual([
      expect.objectContaining({ level: 'warn', customer: 'acme', key_id: keyId, outcome: 'allowed' }),
    ]);
  });

  it.each(MARKS)('is refused with browser_keys: reject, before it costs anything: %o', async (mark) => {
    const system = await start('reject');
    for (const path of ['/v1/conversations', '/v1/conversations/x', '/v1/usage']) {
      const answer = await send(system, { ...bearer(system.key), ...mark }, path);
      expect(answer).toMatchObject({ status: 403, body: { code: 'browser_use' } });
      expect(answer.headers.has('ratelimit')).toBe(false);
    }
    expect(system.backend.seen).toEqual([]);
    expect((await send(system, bearer(system.key), '/v1/usage')).body).toMatchObject({ used: 0 });
    expect(await readMetric(system.gateway, 'tollgate_browser_use_total')).toEqual({
      'plan="starter",outcome="refused"': 3,
    });
    expect(warnings(system)).toEqual([expect.objectContaining({ customer: 'acme', outcome: 'refused' })]);
  });

  it('is served without a log line with browser_keys: allow', async () => {
    const system = await start('allow');
    for (const mark of MARKS) expect((await send(system, { ...bearer(system.key), ...mark })).status).toBe(200);
    expect(await readMetric(system.gateway, 'tollgate_browser_use_total')).toEqual({});
    expect(warnings(system)).toEqual([]);
  });

  it('is counted each time and warned of once in a while, each key by itself', async () => {
    const system = await start();
    const other = await createKey(system.gateway, 'acme');
    for (const key of [system.key, other, system.key, other, system.key]) {
      await send(system, { ...bearer(key), Origin: 'https://shop.example' });
    }
    expect(await readMetric(system.gateway, 'tollgate_browser_use_total')).toEqual({
      'plan="starter",outcome="allowed"': 5,
    });
    expect(new Set(warnings(system).map(({ key_id }) => key_id)).size).toBe(2);
    expect(warnings(system)).toHaveLength(2);
  });

  it('has nothing of what the browser says of itself in the log', async () => {
    const system = await start();
    await send(system, { ...bearer(system.key), Origin: `https://${system.key}.example` });
    expect(warnings(system)).toHaveLength(1);
    expect(JSON.stringify(system.gateway.logs)).not.toContain(system.key);
  });
});

it.each([
  ['no key', {}, 401, 'missing_key'],
  ['an unknown key', bearer('unknown-key'), 401, 'invalid_key'],
])('%s that a browser sends is refused for what it is, and not counted', async (_, headers, status, code) => {
  const system = await start('reject');
  const answer = await send(system, { ...headers, Origin: 'https://shop.example' });
  expect(answer).toMatchObject({ status, body: { code } });
  expect(await readMetric(system.gateway, 'tollgate_browser_use_total')).toEqual({});
});

it('other programs are never mistaken for a browser', async () => {
  const system = await start('reject');
  // Node.js's fetch sends Sec-Fetch-Mode with each of these.
  for (const headers of [{}, { Referer: 'https://shop.example/' }, { 'Sec-Fetch-Mode': 'cors' }]) {
    expect((await send(system, { ...bearer(system.key), ...headers })).status).toBe(200);
  }
  expect(system.backend.seen[0]?.headers).toHaveProperty('sec-fetch-mode');
});

it.each(['allow', 'warn', 'reject'])('CORS is not offered with browser_keys: %s', async (browserKeys) => {
  const system = await start(browserKeys);
  const url = `${system.gateway.public}/v1/conversations`;
  const preflight = { 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'authorization' };
  const answers = [
    await fetch(url, { method: 'OPTIONS', headers: { Origin: 'https://shop.example', ...preflight } }),
    await fetch(url, { headers: { ...bearer(system.key), Origin: 'https://shop.example' } }),
    await fetch(url, { headers: { Origin: 'https://shop.example' } }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([405, browserKeys === 'reject' ? 403 : 200, 401]);
  const names = answers.flatMap(({ headers }) => [...headers.keys()]);
  expect(names.filter((name) => name.startsWith('access-control-'))).toEqual([]);
});
