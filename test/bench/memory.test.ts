import { describe, expect, it } from 'vitest';
import { parseSmapsRollup } from '../../bench/memory.ts';
import { describeGrowth, spaced } from '../../bench/scenarios/memory.ts';

const ROLLUP = `55de0b89a000-7fffa4b80000 ---p 00000000 00:00 0                          [rollup]
Rss:                1740 kB
Pss:                 340 kB
Pss_Dirty:           112 kB
`;

it('resident and proportional size are read in bytes', () => {
  expect(parseSmapsRollup(ROLLUP)).toEqual({ rss: 1740 * 1024, pss: 340 * 1024 });
});

it('what is not /proc/PID/smaps_rollup is an error', () => {
  expect(() => parseSmapsRollup('')).toThrow('does not say Rss');
});

describe('memory is judged by its last half', () => {
  const MIB = 2 ** 20;
  it.each([
    [
      'grew at first and then stayed',
      [100, 200, 250, 250, 250],
      'Over the last half 0.0 bytes a request, 0.0 % in all: flat.',
    ],
    ['goes on growing', [100, 150, 200, 250, 300], 'Over the last half 52.4 bytes a request, 50.0 % in all: not flat.'],
    [
      'gives memory back',
      [100, 300, 200, 150, 100],
      'Over the last half -52.4 bytes a request, -50.0 % in all: not flat.',
    ],
  ])('%s', (_, mebibytes, verdict) => {
    const samples = mebibytes.map((size, i) => ({ requests: i * 1_000_000, rss: size * MIB }));
    expect(describeGrowth(samples)).toBe(verdict);
  });
});

it('the samples that are shown are evenly spaced, the first and the last among them', () => {
  expect(spaced([0, 1, 2, 3, 4, 5, 6], 3)).toEqual([0, 3, 6]);
  expect(spaced([0, 1], 3)).toEqual([0, 1]);
});
