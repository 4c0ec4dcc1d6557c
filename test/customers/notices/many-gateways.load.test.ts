/** Notices of many gateways: each is sent once while all goes well, and at least once whatever happens. */
import { describe, expect, test } from 'vitest';
import { type Delivered, ENDPOINT, MINUTE_MS, openGateways } from './virtual-gateways.ts';

const LIMIT = 1000;

/** The level of each notice: 100 for `quota.exceeded`. */
function levelsOf(delivered: readonly Delivered[]): number[] {
  return delivered.map(({ body: { type, data } }) => {
    if (type === 'quota.exceeded') return 100;
    return Number(data.percent) >= 95 ? 95 : 80;
  });
}

describe('three gateways', () => {
  test.each([1, 2, 3])('send each level once, whatever teeters (seed %d)', async (seed) => {
    const gateways = openGateways({ seed, limit: LIMIT });
    await gateways.climbTo(790, 15, 60);
    expect(gateways.delivered).toEqual([]);
    // From here on, units expire: usage rises and falls around 80 %.
    const { store, dice } = gateways.world;
    const seen: number[] = [];
    for (let minute = 0; minute < 60; minute++) {
      await gateways.climbTo(dice.between(780, 820), 60, 1);
      seen.push(store.used('acme'));
    }
    expect(seen.filter((used, at) => used < 800 !== (seen[at - 1] ?? 0) < 800).length).toBeGreaterThan(10);
    expect(levelsOf(gateways.delivered)).toEqual([80]);
    await gateways.climbTo(LIMIT + 1, 200, 6);
    expect(levelsOf(gateways.delivered)).toEqual([80, 95, 100]);
    expect(new Set(gateways.delivered.map(({ id }) => id)).size).toBe(3);
    await gateways.climbTo(LIMIT + 1, 30, 60);
    expect(levelsOf(gateways.delivered)).toEqual([80, 95, 100]);

    // Nothing for two hours, so that nobody but the store can know that usage fell.
    await gateways.run(120);
    await gateways.climbTo(LIMIT + 1, 60, 20);
    expect(levelsOf(gateways.delivered)).toEqual([80, 95, 100, 80, 95, 100]);
  });

  test.each([11, 12, 13])('send nothing of a level that only units of open leases reached (seed %d)', async (seed) => {
    const gateways = openGateways({ seed, limit: LIMIT });
    expect(await gateways.send(770, 120)).toBeGreaterThanOrEqual(800);
    await gateways.run(20);
    expect(gateways.world.store.used('acme')).toBe(770);
    expect(gateways.delivered).toEqual([]);

    await gateways.send(30, 120);
    await gateways.run(20);
    expect(gateways.delivered.map(({ body }) => body.data)).toMatchObject([{ used: 800, percent: 80 }]);
  });

  test.each([14, 15])('send one notice when load goes on beyond the level (seed %d)', async (seed) => {
    const gateways = openGateways({ seed, limit: LIMIT });
    await gateways.send(790, 120);
    await gateways.send(60, 2);
    await gateways.run(20);
    expect(levelsOf(gateways.delivered)).toEqual([80]);
    expect(gateways.delivered[0]?.body.data.used).toBeGreaterThanOrEqual(800);
    expect(await gateways.notices.counts()).toEqual({ pending: 0, dead: 0 });
  });

  test('send each level once to a customer whose even load is a little above its limit', async () => {
    const gateways = openGateways({ seed: 16, limit: LIMIT });
    await gateways.send(3 * 1020, 1020 / 3600);
    expect(gateways.world.gateways.reduce((sum, { refused }) => sum + refused, 0)).toBeGreaterThan(0);
    expect(levelsOf(gateways.delivered)).toEqual([80, 95, 100]);
  });

  test('send a thin body with the facts of the moment', async () => {
    const gateways = openGateways({ seed: 4, limit: LIMIT });
    await gateways.climbTo(LIMIT, 60, 15);
    const [first] = gateways.delivered;
    expect(first?.body).toEqual({
      type: 'quota.threshold',
      timestamp: expect.stringMatching(/^2030-01-01T00:1\d:\d\d\.\d{3}Z$/),
      data: {
        customer: 'acme',
        plan: 'starter',
        limit: 1000,
        used: expect.any(Number),
        percent: 80,
        reset_seconds: expect.any(Number),
        window: 'hourly',
      },
    });
    expect(Object.keys(first?.body.data ?? {})).toEqual([
      'customer',
      'plan',
      'limit',
      'used',
      'percent',
      'reset_seconds',
      'window',
    ]);
  });

  test('deliver to a receiver that is down for 20 minutes, with the same id in all attempts', async () => {
    const gateways = openGateways({ seed: 5, limit: LIMIT });
    const down = { fromMs: 0, untilMs: 0 };
    gateways.respond = (_url, atMs) => {
      if (down.fromMs === 0) Object.assign(down, { fromMs: atMs, untilMs: atMs + 20 * MINUTE_MS });
      const failed = { kind: 'failed', reason: 'connection refused', retryAfterMs: null } as const;
      return atMs < down.untilMs ? failed : { kind: 'delivered' };
    };
    await gateways.climbTo(850, 60, 20);
    expect(gateways.delivered).toEqual([]);
    const [pending] = (await gateways.notices.list('pending', 0, 10)).items;
    await gateways.run(60);
    expect(gateways.delivered.map(({ id }) => id)).toEqual([pending?.id]);
    expect(gateways.attempts.map(({ result }) => result)).toEqual([...Array(5).fill('failed'), 'delivered']);
    expect(await gateways.notices.counts()).toEqual({ pending: 0, dead: 0 });
  });

  test('give up after six attempts, and respect Retry-After between them', async () => {
    const gateways = openGateways({ seed: 6, limit: LIMIT });
    gateways.respond = () => ({ kind: 'failed', reason: 'status 503', retryAfterMs: 300_000 });
    await gateways.climbTo(850, 60, 20);
    await gateways.run(120);
    expect(gateways.attempts.map(({ result }) => result)).toEqual([...Array(5).fill('failed'), 'dead']);
    const waits = gateways.attempts.slice(1).map(({ atMs }, at) => atMs - (gateways.attempts[at]?.atMs ?? 0));
    for (const wait of waits) expect(wait).toBeGreaterThan(299_000);
    expect(await gateways.notices.counts()).toEqual({ pending: 0, dead: 1 });
  });

  test('send to the other endpoints while one is down, and to each once', async () => {
    const other = { ...ENDPOINT, url: 'https://other.example/' };
    const gateways = openGateways({ seed: 7, limit: LIMIT, endpoints: [ENDPOINT, other] });
    gateways.respond = (url, atMs) =>
      url === ENDPOINT.url && atMs < 30 * MINUTE_MS
        ? { kind: 'failed', reason: 'connection refused', retryAfterMs: null }
        : { kind: 'delivered' };
    await gateways.climbTo(850, 60, 20);
    expect(gateways.delivered.map(({ endpoint }) => endpoint)).toEqual([other.url]);
    await gateways.run(60);
    expect(gateways.delivered.map(({ endpoint }) => endpoint)).toEqual([other.url, ENDPOINT.url]);
    expect(new Set(gateways.delivered.map(({ id }) => id)).size).toBe(1);
  });

  test('send nothing more to an endpoint that responded 410, and say so in the audit', async () => {
    const gateways = openGateways({ seed: 8, limit: LIMIT });
    gateways.respond = () => ({ kind: 'gone' });
    await gateways.climbTo(LIMIT + 1, 60, 20);
    expect(gateways.attempts.map(({ result }) => result)).toEqual(['gone']);
    expect(gateways.audited).toEqual([
      { action: 'endpoint.disable', customer: 'acme', details: { endpoint: ENDPOINT.url } },
    ]);
    expect(await gateways.notices.counts()).toEqual({ pending: 0, dead: 1 });
  });

  test("unset a customer's URL that responded 410, and go on with the operator's", async () => {
    const notifyUrl = 'https://acme.example/';
    const gateways = openGateways({ seed: 10, limit: LIMIT, notifyUrl });
    gateways.respond = (url) => (url === notifyUrl ? { kind: 'gone' } : { kind: 'delivered' });
    await gateways.climbTo(LIMIT + 1, 60, 20);
    expect(gateways.attempts.filter(({ result }) => result === 'gone')).toHaveLength(1);
    expect(gateways.audited).toEqual([
      { action: 'endpoint.disable', customer: 'acme', details: { endpoint: 'notify_url' } },
    ]);
    expect(levelsOf(gateways.delivered)).toEqual([80, 95, 100]);
    expect(await gateways.notices.counts()).toEqual({ pending: 0, dead: 0 });
  });

  test('deliver what a gateway took before it died, with the same id', async () => {
    const gateways = openGateways({ seed: 9, limit: LIMIT });
    const takenBy: string[] = [];
    gateways.respond = (_url, _atMs, id) => {
      takenBy.push(id);
      return takenBy.length === 1 ? 'taker dies' : { kind: 'delivered' };
    };
    await gateways.climbTo(850, 60, 20);
    expect(takenBy).toHaveLength(2);
    expect(gateways.delivered.map(({ id }) => id)).toEqual([takenBy[0]]);
  });
});
