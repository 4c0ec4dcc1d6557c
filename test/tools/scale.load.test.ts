/** The simulation of npm run lab -- scale on a small scale, and the count that it relies on. */
import { describe, expect, test } from 'vitest';
import { HourlyCount, WholeCount } from '../../tools/scale/hourly-count.ts';
import { type ScaleResult, simulateScale } from '../../tools/scale/simulation.ts';

const HOUR_MS = 3_600_000;
const SMALL = { customers: 2000, gateways: 20, durationMs: 62 * 60_000, seed: 7 };

describe('what begins within an hour', () => {
  test('is too much when one more than the limit begins before the first is an hour old', () => {
    const count = new HourlyCount(2);
    for (const atMs of [0, 1000, HOUR_MS - 1]) count.begins(1, atMs);
    count.begins(2, HOUR_MS - 1);
    expect(count.tooMany).toBe(1);
  });

  test('is not too much when the first is an hour old', () => {
    const count = new HourlyCount(2);
    for (const atMs of [0, 1000, HOUR_MS, HOUR_MS + 1000]) count.begins(1, atMs);
    expect(count.tooMany).toBe(0);
  });

  test('is at most what begins in the whole run', () => {
    const count = new WholeCount(2, 10);
    for (const customer of [3, 3, 3, 4]) count.begins(customer);
    expect(count.tooMany).toBe(1);
  });
});

describe('thousands of customers on twenty gateways that crash and lose replies', async () => {
  const result = await simulateScale(SMALL);
  const of = (name: string) => {
    const found = result.classes.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no customers are ${name}`);
    return found;
  };
  const costOf = (name: string) => of(name).storeCalls / of(name).requests;

  test('get no more than their limits', () => {
    for (const each of result.classes) expect(each).toMatchObject({ tooMany: 0 });
  });

  test('are all served, and each request has one outcome', () => {
    expect(of('rare').requests).toBeGreaterThan(SMALL.customers);
    for (const { requests, begun, refused, failed } of result.classes) expect(begun + refused + failed).toBe(requests);
  });

  test('get what they may have when they ask for more', () => {
    const { customers, begun } = of('saturating');
    expect(begun).toBeGreaterThan(0.97 * customers * 1000);
    expect(of('bursting').begun).toBeGreaterThan(0);
  });

  test('cost the store what docs/capacity.md says', () => {
    expect(costOf('rare')).toBeLessThan(1.05);
    expect(costOf('saturating')).toBeLessThan(1.2);
    expect(costOf('flooding')).toBeLessThan(0.05);
    for (const [name, perGateway] of [
      ['heavy', 25],
      ['wide', 50],
    ] as const) {
      expect(costOf(name)).toBeLessThan(2 / perGateway);
    }
  });

  test('leave units stranded only as many as crashes and lost replies explain', () => {
    expect(result.stranded).toBeGreaterThanOrEqual(0);
    expect(result.stranded).toBeLessThanOrEqual(0.001 * result.granted);
  });

  test('do the same again from the same seed', async () => {
    const tiny = { ...SMALL, customers: 100, gateways: 5, durationMs: 10 * 60_000 };
    const first: ScaleResult = await simulateScale(tiny);
    expect(await simulateScale(tiny)).toStrictEqual(first);
  });
});
