/** Mixes of light and heavy requests over a real Redis and several gateways, with an hour of one second. */
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { hourly } from '../../src/store/windows.ts';
import { Dice } from '../../tools/simulator/dice.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { shareOfRuns } from '../support/share-of-runs.ts';
import { openShortQuota, SHORT_WINDOW } from '../support/short-quota.ts';

/** An hour, the hold of its leases, and some time after. */
const DURATION_MS = 4500;

interface Mix {
  readonly seed: number;
  readonly gateways: number;
  readonly limit: number;
  readonly units: readonly number[];
}

const mixes: fc.Arbitrary<Mix> = fc.record({
  seed: fc.integer(),
  gateways: fc.integer({ min: 1, max: 3 }),
  limit: fc.integer({ min: 5, max: 120 }),
  units: fc.constantFrom([1, 1, 5], [5], [2, 3], [1, 40]),
});

test('no second sees more units than the limit, each request has all of its units or none, and refunds are whole', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const runs = fc.sample(mixes, { numRuns: shareOfRuns(16) });
  await Promise.all(runs.map((mix, index) => expectExact(redis, `customer-${index}`, mix)));
}, 60_000);

async function expectExact(redis: RedisServer, customer: string, { seed, gateways, limit, units: choices }: Mix) {
  const dice = new Dice(seed);
  const terms = { limits: hourly(limit), usageResetAt: '' };
  const quotas = await Promise.all(Array.from({ length: gateways }, () => openShortQuota(redis)));
  const begins: { readonly atMs: number; readonly units: number }[] = [];

  async function request(units: number, isSent: boolean): Promise<void> {
    const quota = quotas[Math.floor(dice.between(0, gateways))];
    const admission = await quota?.admit(customer, terms, units);
    if (admission?.outcome !== 'admitted') return;
    const isInTime = performance.now() < admission.beginDeadlineMs && Date.now() < admission.beginDeadlineWallMs;
    const isUsed = isSent && isInTime;
    if (isUsed) begins.push({ atMs: performance.now(), units });
    admission.settle(isUsed);
  }

  const untilMs = performance.now() + DURATION_MS;
  const asked: Promise<void>[] = [];
  while (performance.now() < untilMs) {
    const units = choices[Math.floor(dice.between(0, choices.length))] ?? 1;
    if (units <= limit) asked.push(request(units, dice.chance(0.8)));
    await setTimeout(dice.between(0, 15));
  }
  await Promise.all(asked);
  await Promise.all(quotas.map((quota) => quota.close()));

  for (const { atMs } of begins) {
    const together = begins.filter((begin) => begin.atMs > atMs - SHORT_WINDOW.windowMs && begin.atMs <= atMs);
    expect(sumOf(together)).toBeLessThanOrEqual(limit);
  }
  const days = (await redis.command('KEYS', `test:usage:{${customer}}:*`)) as string[];
  const hours = (await Promise.all(days.map((day) => redis.command('HVALS', day)))).flat();
  expect(hours.reduce((sum: number, count) => sum + Number(count), 0)).toBe(sumOf(begins));
}

function sumOf(begins: readonly { readonly units: number }[]): number {
  return begins.reduce((sum, { units }) => sum + units, 0);
}
