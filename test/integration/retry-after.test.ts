/** Whoever waits as long as it was told to, alone, is admitted: with the clocks, timers and the Redis of this machine. */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Admission } from '../../src/customers/quota/hourly-quota.ts';
import { hourly } from '../../src/store/windows.ts';
import { startRedis } from '../support/redis-server.ts';
import { openShortQuota } from '../support/short-quota.ts';

/** Refused so far apart from one another that what is left of their last second covers all of it. */
const CUSTOMERS = 10;
const ROUNDS = 2;

/** Light requests, and heavy ones that leave some units unused. */
const KINDS = [
  { units: 1, limit: 2 },
  { units: 5, limit: 13 },
];

test('a client that waits exactly as long as its refusal said, alone, is admitted', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const quota = await openShortQuota(redis);

  /** Uses up what there is, and says what became of the request after that and of the one after the wait. */
  async function round(
    index: number,
    { units, limit }: (typeof KINDS)[number],
  ): Promise<readonly Admission['outcome'][]> {
    const admit = () => quota.admit(`customer-${index}-${units}`, { limits: hourly(limit), usageResetAt: '' }, units);
    while ((await admit()).outcome === 'admitted');
    await setTimeout((1000 * index) / CUSTOMERS);
    const refused = await admit();
    await setTimeout(refused.resetSeconds(0) * 1000);
    const next = await admit();
    return [refused.outcome, next.outcome];
  }

  async function rounds(index: number): Promise<(readonly Admission['outcome'][])[]> {
    const outcomes = [];
    for (let i = 0; i < ROUNDS; i++) outcomes.push(...(await Promise.all(KINDS.map((kind) => round(index, kind)))));
    return outcomes;
  }

  const all = await Promise.all(Array.from({ length: CUSTOMERS }, (_, index) => rounds(index)));
  expect(all.flat()).toEqual(Array(CUSTOMERS * ROUNDS * KINDS.length).fill(['refused', 'admitted']));
});
