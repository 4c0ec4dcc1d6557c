/** What callers notice of a store that is away, and what the count is worth meanwhile and afterwards. */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { awakeMs } from '../support/awake-clock.ts';
import type { TestGateway } from '../support/gateway.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { announceOthers, type RedisSystem, readWindow, startRedisSystem } from '../support/redis-system.ts';

const TIMEOUT_MS = 300;
/** What a busy machine may add to a request. */
const SLACK_MS = 1500;
const STORE = { timeout_ms: TIMEOUT_MS };

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly tookMs: number;
}

async function read({ public: url }: TestGateway, key: string, path = '/v1/conversations'): Promise<Answer> {
  const startedMs = awakeMs();
  const answer = await fetch(url + path, { headers: bearer(key) });
  const { code } = (await answer.json()) as { code?: string };
  return { status: answer.status, code, tookMs: awakeMs() - startedMs };
}

async function readOneByOne(gateway: TestGateway, key: string, count: number): Promise<Answer[]> {
  const answers = [];
  for (let i = 0; i < count; i++) answers.push(await read(gateway, key));
  return answers;
}

function longestMs(answers: readonly Answer[]): number {
  return Math.max(...answers.map(({ tookMs }) => tookMs));
}

function statuses(answers: readonly Answer[]): Set<number> {
  return new Set(answers.map(({ status }) => status));
}

const OUTAGES = [
  {
    name: 'stopped where it stands',
    begin: async (redis: RedisServer) => {
      redis.pause();
      // What the test ends with must not wait for it.
      onTestFinished(() => redis.resume());
    },
  },
  { name: 'killed', begin: (redis: RedisServer) => redis.kill() },
  { name: 'refusing every write', begin: (redis: RedisServer) => redis.command('CONFIG', 'SET', 'maxmemory', 1) },
];

test.each(OUTAGES)(
  'with Redis $name a known key is still served, and no request waits longer than store.timeout_ms',
  async ({ begin }) => {
    const { redis, gateway, key } = await startRedisSystem({ config: { store: STORE } });
    expect((await read(gateway, key)).status).toBe(200);
    await begin(redis);

    const answers = await Promise.all(Array.from({ length: 20 }, () => read(gateway, key)));
    answers.push(...(await readOneByOne(gateway, key, 50)));
    expect(statuses(answers)).toEqual(new Set([200]));
    expect(longestMs(answers)).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  },
);

test.each(OUTAGES.slice(0, 2))(
  'with Redis $name no request waits once the gateway has detected it',
  async ({ begin }) => {
    const { redis, gateway, key } = await startRedisSystem({ config: { store: STORE } });
    await readOneByOne(gateway, key, 5);
    await begin(redis);
    await read(gateway, key);

    const tookMs = (await readOneByOne(gateway, key, 51)).map((answer) => answer.tookMs);
    expect(tookMs.toSorted((a, b) => a - b)[25]).toBeLessThan(TIMEOUT_MS / 3);
  },
);

test.each(OUTAGES.slice(0, 2))(
  'with Redis $name a key that is not in memory gets 503 in time, and never 401',
  async ({ begin }) => {
    const { redis, gateway, key } = await startRedisSystem({ config: { store: STORE } });
    await read(gateway, key);
    await begin(redis);
    for (let i = 0; i < 10; i++) {
      const answer = await read(gateway, `a-key-of-nobody-${i}`);
      expect(answer).toMatchObject({ status: 503, code: 'store_unavailable' });
      expect(answer.tookMs).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    }
  },
);

test.each(OUTAGES)('with Redis $name and on_error: deny, requests that no lease covers get 503', async ({ begin }) => {
  const { redis, gateway, key } = await startRedisSystem({ config: { store: { ...STORE, on_error: 'deny' } } });
  await read(gateway, key);
  await begin(redis);
  for (const answer of await readOneByOne(gateway, key, 10)) {
    expect(answer).toMatchObject({ status: 503, code: 'store_unavailable' });
    expect(answer.tookMs).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  }
});

test.each(OUTAGES)('with Redis $name and on_error: allow, requests pass beyond the limit', async ({ begin }) => {
  const { redis, gateway, key, backend } = await startRedisSystem({
    config: { store: { ...STORE, on_error: 'allow' } },
    customer: { plan: 'enterprise', requests_per_hour: 5 },
  });
  await read(gateway, key);
  await begin(redis);
  const answers = await readOneByOne(gateway, key, 20);
  expect(statuses(answers)).toEqual(new Set([200]));
  expect(longestMs(answers)).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  expect(backend.seen).toHaveLength(21);
});

/** So few that no lease takes units ahead of requests. */
const LIMIT = 8;

/** Three instances run elsewhere, so this one has a quarter of the limit. */
async function startWithShare(used: number): Promise<RedisSystem> {
  const system = await startRedisSystem({
    config: { store: STORE },
    customer: { plan: 'enterprise', requests_per_hour: LIMIT },
    prepare: async (redis) => {
      await announceOthers(redis, 3);
      return undefined;
    },
  });
  const { gateway, key } = system;
  // The usage is read free of charge, and the key is known from then on.
  await read(gateway, key, '/v1/usage');
  await readOneByOne(gateway, key, used);
  return system;
}

test.each([
  [0, 2],
  [4, 2 - 4 / 4],
  [LIMIT, 0],
])(
  'while the store is unavailable, and %i of 8 were used, one of four gateways lets %i more through',
  async (used, more) => {
    const { redis, gateway, key, backend } = await startWithShare(used);
    await redis.kill();
    const answers = await readOneByOne(gateway, key, LIMIT);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(more);
    expect(answers.filter(({ code }) => code === 'quota_exceeded')).toHaveLength(LIMIT - more);
    expect(backend.seen).toHaveLength(used + more);
  },
);

test('each gateway limits a customer to its share, however often the store becomes unavailable', async () => {
  const limit = 100;
  const share = limit / 2;
  const { redis, gateway, key, backend, customer } = await startRedisSystem({
    config: { store: { timeout_ms: 100 } },
    customer: { plan: 'enterprise', requests_per_hour: limit },
    prepare: async (empty) => {
      await announceOthers(empty, 1);
      return undefined;
    },
  });
  await read(gateway, key);

  let flapping = true;
  const flaps = (async () => {
    for (let flap = 0; flap < 3; flap++) {
      redis.pause();
      await setTimeout(500);
      redis.resume();
      await setTimeout(500);
    }
    flapping = false;
  })();
  const answers: Promise<Answer>[] = [];
  while (flapping) {
    answers.push(...Array.from({ length: 20 }, () => read(gateway, key)));
    await setTimeout(50);
  }
  await flaps;
  const settled = await Promise.all(answers);
  expect(statuses(settled)).toEqual(new Set([200, 429]));
  expect(backend.seen.length).toBeGreaterThan(share);
  expect(backend.seen.length).toBeLessThanOrEqual(limit + share);

  // Every reply came, though late: so all was given back or reported, and nothing twice.
  await expect.poll(async () => (await readWindow(redis, customer)).used).toBe(backend.seen.length);
  await readOneByOne(gateway, key, 20);
  await expect.poll(async () => (await readWindow(redis, customer)).used).toBe(backend.seen.length);
});

test('requests admitted during an outage are counted once in the store afterwards', async () => {
  const { redis, gateway, key, backend, customer } = await startRedisSystem({
    config: { store: STORE },
    customer: { plan: 'enterprise', requests_per_hour: 1000 },
  });
  await readOneByOne(gateway, key, 7);
  redis.pause();
  await readOneByOne(gateway, key, 30);
  redis.resume();
  await expect.poll(async () => (await readWindow(redis, customer)).used).toBe(37);
  await readOneByOne(gateway, key, 5);
  await expect.poll(async () => (await readWindow(redis, customer)).used).toBe(42);
  expect(backend.seen).toHaveLength(42);
});
