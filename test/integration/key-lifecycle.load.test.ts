/** What happens to a key holds on three gateways that share a Redis, while all of them are busy with it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin, createKey } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { type RedisSystem, startRedisSystem } from '../support/redis-system.ts';

const GATEWAYS = 3;
/** Requests that each gateway has at a time. */
const CONCURRENCY = 4;
/** Between two requests of a caller: without it, the callers use all the CPU time that other tests need. */
const PAUSE_MS = 25;
const AT_ONCE_MS = 1000;

interface Answered {
  readonly gateway: number;
  readonly status: number;
  readonly text: string;
  /** Wall time in ms at which the request was sent, and at which its answer was there. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

interface Load {
  /** In the order of the answers. */
  readonly answers: readonly Answered[];
  /** Lets it run for so long. */
  run(ms: number): Promise<void>;
  /** Resolves once every gateway has answered so after `sinceMs`. */
  until(status: number, sinceMs: number): Promise<void>;
  stop(): Promise<void>;
}

function startThree(): Promise<RedisSystem> {
  return startRedisSystem({
    gateways: GATEWAYS,
    customer: { plan: 'enterprise', requests_per_hour: 10_000_000 },
    config: {
      // The deadline is not what is tested here: all of it shares a few cores.
      store: { timeout_ms: 5000 },
      // A key that has ended goes on being tried.
      auth: { failures_per_minute: 1_000_000 },
      logging: { access: 'off' },
    },
  });
}

/** Keeps requests under way at every gateway; each of its callers asks for the key anew for each request. */
function startLoad(gateways: readonly TestGateway[], keyOf: (caller: number) => string): Load {
  const answers: Answered[] = [];
  let running = true;
  const callers = gateways.flatMap(({ public: url }, gateway) => {
    const pool = new Pool(url, { connections: CONCURRENCY, pipelining: 1 });
    onTestFinished(() => pool.destroy());
    return Array.from({ length: CONCURRENCY }, async (_, i) => {
      while (running) {
        const sentAtMs = Date.now();
        const headers = bearer(keyOf(gateway * CONCURRENCY + i));
        const { statusCode, body } = await pool.request({ path: '/v1/conversations', method: 'GET', headers });
        const text = await body.text();
        answers.push({ gateway, status: statusCode, text, sentAtMs, answeredAtMs: Date.now() });
        await sleep(PAUSE_MS);
      }
    });
  });
  const finished = Promise.all(callers);
  // A test that fails leaves its callers behind; one that goes on hears of them from what it waits for.
  finished.catch(() => undefined);
  return {
    answers,
    run: async (ms) => {
      await Promise.race([sleep(ms), finished]);
    },
    async until(status, sinceMs) {
      const isThere = (gateway: number) =>
        answers.some((each) => each.gateway === gateway && each.status === status && each.sentAtMs >= sinceMs);
      const all = () => gateways.every((_, gateway) => isThere(gateway));
      await expect.poll(all, { interval: 20 }).toBe(true);
    },
    async stop() {
      running = false;
      await finished;
    },
  };
}

const statusesOf = (answers: readonly Answered[]) => [...new Set(answers.map(({ status }) => status))];

async function findKeyId(gateway: TestGateway, customer: string): Promise<string> {
  const { body } = await callAdmin(gateway, `/admin/v1/customers/${customer}/keys`);
  return body.items[0].id;
}

test('a client that switches keys within the grace sees only 200s, rotation after rotation', async () => {
  const rotations = 2;
  // Much longer than the callers take, also on a busy machine.
  const graceSeconds = 12;
  const { gateways, gateway, customer } = await startThree();
  const first = await createKey(gateway, customer);
  let keyId = await findKeyId(gateway, customer);
  const keys = Array.from({ length: GATEWAYS * CONCURRENCY }, () => first);
  const load = startLoad(gateways, (caller) => keys[caller] ?? first);
  await load.run(200);
  for (let rotation = 0; rotation < rotations; rotation++) {
    const through = gateways[rotation % GATEWAYS] ?? gateway;
    const { status, body } = await callAdmin(through, `/admin/v1/keys/${keyId}/rotate`, {
      body: { grace_seconds: graceSeconds },
    });
    expect(status).toBe(201);
    keyId = body.id;
    // Some callers after the others take the new key, the last of them well before the grace ends.
    for (const caller of keys.keys()) {
      keys[caller] = body.key;
      if (caller % GATEWAYS === 0) await load.run(40);
    }
    if (rotation === 0) await load.run(graceSeconds * 1000 + 100);
  }
  await load.stop();
  expect(load.answers.length).toBeGreaterThan(100);
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
});

test('after the grace the old key is refused within a second on every gateway, and not before', async () => {
  const { gateways, gateway, customer } = await startThree();
  const key = await createKey(gateway, customer);
  const keyId = await findKeyId(gateway, customer);
  const load = startLoad(gateways, () => key);
  await load.run(200);
  const { body: rotated } = await callAdmin(gateway, `/admin/v1/keys/${keyId}/rotate`, { body: { grace_seconds: 1 } });
  const { body: old } = await callAdmin(gateway, `/admin/v1/keys/${keyId}`);
  const endsMs = Date.parse(old.expires_at);
  await load.until(401, endsMs + AT_ONCE_MS);
  await load.stop();

  const before = load.answers.filter(({ answeredAtMs }) => answeredAtMs < endsMs);
  const after = load.answers.filter(({ sentAtMs }) => sentAtMs >= endsMs + AT_ONCE_MS);
  expect(statusesOf(before)).toEqual([200]);
  expect(statusesOf(after)).toEqual([401]);
  for (const { public: url } of gateways) {
    expect((await fetch(`${url}/v1/conversations`, { headers: bearer(rotated.key) })).status).toBe(200);
  }
});

test('a key that is revoked under load is refused within a second on every gateway, and stays refused', async () => {
  const { gateways, gateway, customer } = await startThree();
  const key = await createKey(gateway, customer);
  const keyId = await findKeyId(gateway, customer);
  const load = startLoad(gateways, () => key);
  await load.until(200, Date.now());
  const { status } = await callAdmin(gateway, `/admin/v1/keys/${keyId}`, { method: 'DELETE' });
  const revokedAtMs = Date.now();
  expect(status).toBe(204);
  await load.until(401, revokedAtMs + AT_ONCE_MS);
  await load.stop();

  expect(statusesOf(load.answers.filter(({ sentAtMs }) => sentAtMs >= revokedAtMs + AT_ONCE_MS))).toEqual([401]);
  for (let gatewayIndex = 0; gatewayIndex < GATEWAYS; gatewayIndex++) {
    const own = load.answers.filter(({ gateway: index }) => index === gatewayIndex);
    const firstRefused = own.find((each) => each.status === 401);
    const later = own.filter(({ sentAtMs }) => sentAtMs > (firstRefused?.answeredAtMs ?? Number.NaN));
    expect(statusesOf(later)).toEqual([401]);
  }
});

test('a key and the one that replaces it share one quota', async () => {
  const { gateways, gateway, customer, backend } = await startRedisSystem({
    gateways: 2,
    customer: { plan: 'enterprise', requests_per_hour: 6 },
  });
  const key = await createKey(gateway, customer);
  const { body } = await callAdmin(gateway, `/admin/v1/keys/${await findKeyId(gateway, customer)}/rotate`, {
    body: {},
  });
  const read = async (each: TestGateway, with_: string) =>
    (await fetch(`${each.public}/v1/conversations`, { headers: bearer(with_) })).status;
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) {
    for (const each of gateways) statuses.push(await read(each, i % 2 === 0 ? key : body.key));
  }
  expect(backend.seen.length).toBeLessThanOrEqual(6);
  expect(statuses.filter((status) => status === 200)).toHaveLength(backend.seen.length);
  expect(statuses.filter((status) => status === 429).length).toBe(8 - backend.seen.length);
});
