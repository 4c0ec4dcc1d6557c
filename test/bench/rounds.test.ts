import { expect, it } from 'vitest';
import { inOrderOf, medianOf, pairwise, type Rounds, totalMicros } from '../../bench/rounds.ts';
import type { Slice } from '../../bench/slice.ts';

const SLICE: Slice = {
  requests: 1,
  bytes: 1,
  micros: 1,
  refused: 0,
  connect: 0,
  read: 0,
  write: 0,
  timeout: 0,
  p50: 1,
  p99: 1,
  p999: 1,
  gatewayMicros: 0,
  redisMicros: 0,
  requestsPerSecond: 1,
};

function costing(...micros: (number | undefined)[]): (Slice | undefined)[] {
  return micros.map((gatewayMicros) => (gatewayMicros === undefined ? undefined : { ...SLICE, gatewayMicros }));
}

function roundsOf(slices: Record<string, (Slice | undefined)[]>): Rounds {
  return { slices: new Map(Object.entries(slices)), problems: [] };
}

it.each([1, 2, 3, 4, 5, 6])('of %i, each is first, and comes after each other one, equally often', (count) => {
  const items = Array.from({ length: count }, (_, i) => i);
  const turns = count % 2 === 0 ? count : 2 * count;
  const seen = new Map<string, number>();
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  for (let turn = 0; turn < turns; turn++) {
    const order = inOrderOf(items, turn);
    expect(order.toSorted()).toEqual(items);
    note(`first: ${order[0]}`);
    for (let i = 1; i < count; i++) note(`${order[i - 1]}, then ${order[i]}`);
  }
  expect(seen.size).toBe(count + count * (count - 1));
  expect(new Set(seen.values())).toEqual(new Set([turns / count]));
});

it('slices are compared with those of the same round, whatever the machine did between the rounds', () => {
  const rounds = roundsOf({ ours: costing(10, 100, 1000), peer: costing(20, 200, 2000) });
  const ratio = pairwise(rounds, ['peer', 'ours'], (slice, other) => totalMicros(slice) / totalMicros(other));
  expect(ratio).toEqual({ median: 2, lower: 2, upper: 2 });
});

it('a round in which one of the two failed does not count', () => {
  const rounds = roundsOf({ ours: costing(10, undefined, 10), peer: costing(20, 90, undefined) });
  const ratio = pairwise(rounds, ['peer', 'ours'], (slice, other) => totalMicros(slice) / totalMicros(other));
  expect(ratio.median).toBe(2);
  expect(medianOf(rounds, 'peer', totalMicros)).toBe(55);
});

it('the CPU time of Redis counts', () => {
  expect(totalMicros({ ...SLICE, gatewayMicros: 40, redisMicros: 20 })).toBe(60);
});
