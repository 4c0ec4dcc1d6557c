/** A master that goes while callers never stop: behind Sentinel, and in a cluster. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type RedisClusterServers, startRedisCluster } from '../support/redis-cluster.ts';
import { type SentinelSystem, startSentinelSystem } from '../support/redis-sentinel.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { windowName } from '../support/redis-system.ts';
import { allowInTraces } from '../support/traces/allowances.ts';
import { LIMIT, type LoadedGateways, PATIENT_MS, startLoadedGateways, TIMEOUT_MS } from './loaded-gateways.ts';

const HEALS = { timeout: 60_000, interval: 50 };

async function expectSound(system: LoadedGateways, mostSeen: number): Promise<void> {
  await system.healed();
  await system.more(100);
  const { known, others } = await system.sound();
  expect([...known].filter((told) => told !== '200 ' && told !== '429 quota_exceeded')).toEqual([]);
  expect([...others].filter((told) => told !== '200 ' && told !== '503 store_unavailable')).toEqual([]);
  expect(system.seen()).toBeLessThanOrEqual(mostSeen);
  await system.exactForSomebodyNew();
}

describe('behind Sentinel', () => {
  /** What is written afterwards waits, and so is not lost with the master. */
  async function holdUntilReplicated(master: RedisServer): Promise<void> {
    await master.command('CLIENT', 'PAUSE', 60_000, 'WRITE');
    await expect
      .poll(async () => {
        const info = String(await master.command('INFO', 'replication'));
        return /^slave0:.*offset=(\d+),/m.exec(info)?.[1] === /^master_repl_offset:(\d+)/m.exec(info)?.[1];
      }, HEALS)
      .toBe(true);
  }

  /** What a master had counted that its replica had not is lost, and may be used once more. */
  const LOST = LIMIT;

  test.each<[string, number, (system: SentinelSystem, master: RedisServer) => Promise<void>]>([
    [
      'dies with everything replicated',
      0,
      async (_, master) => {
        await holdUntilReplicated(master);
        await master.kill();
      },
    ],
    ['dies', LOST, (_, master) => master.kill()],
    ['falls silent', LOST, async (_, master) => master.pause()],
    ['has to hand over', LOST, (system) => system.failover()],
  ])(
    'when a master %s under load, no valid key gets 401, no request waits too long, and excess requests are bounded',
    async (_, lost, lose) => {
      const sentinels = await startSentinelSystem();
      onTestFinished(() => sentinels.stop());
      const master = await sentinels.master();
      const system = await startLoadedGateways({
        storeUrl: sentinels.url,
        records: master,
        timeoutMs: TIMEOUT_MS,
        onError: 'local',
      });
      await system.more(20);
      if (lost > 0) allowInTraces({ lostUnits: Number.POSITIVE_INFINITY });
      await lose(sentinels, master);
      await expect.poll(async () => (await sentinels.master()) !== master, HEALS).toBe(true);
      await expectSound(system, LIMIT + system.shares + lost);
    },
  );
});

describe('in a cluster', () => {
  let cluster: RedisClusterServers;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  beforeEach(() => cluster.onMasters('FLUSHALL'));
  afterAll(() => cluster.stop());

  const startGateways = (settings: { timeoutMs: number; onError: 'local' | 'deny' }) =>
    startLoadedGateways({
      storeUrl: cluster.url,
      records: { command: (name, key, ...rest) => cluster.command(String(name), String(key), ...rest) },
      ...settings,
    });

  test('slots that move under load fail no request, and the limit is exact', async () => {
    const system = await startGateways({ timeoutMs: PATIENT_MS, onError: 'deny' });
    for (const customer of ['limited', 'large', 'limited', 'large']) {
      await cluster.moveSlot(windowName(customer), { emptied: () => system.more(30) });
      await system.more(30);
    }
    await system.healed();
    const { known, others } = await system.sound();
    expect(known).toEqual(new Set(['200 ', '429 quota_exceeded']));
    expect(others).toEqual(new Set(['200 ']));
    expect(system.seen()).toBeLessThanOrEqual(LIMIT);
    await system.exactForSomebodyNew();
  });

  test('when a master is lost under load, no valid key gets 401, no request waits too long, and excess requests are bounded', async () => {
    const system = await startGateways({ timeoutMs: TIMEOUT_MS, onError: 'local' });
    await system.more(20);
    const window = windowName('limited');
    const master = await cluster.holderOf(window);
    allowInTraces({ lostUnits: Number.POSITIVE_INFINITY });
    await master.kill();
    await system.decidedWithoutStore();
    await expect.poll(async () => (await cluster.holderOf(window)) !== master, HEALS).toBe(true);
    // What the master had counted that its replica had not is lost, and may be used once more.
    await expectSound(system, LIMIT + system.shares + LIMIT);
  });
});
