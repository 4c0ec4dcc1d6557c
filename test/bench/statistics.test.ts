import { expect, it } from 'vitest';
import { median, quantile, slope } from '../../bench/statistics.ts';

it.each([
  [[3], 3],
  [[4, 1, 3], 3],
  [[4, 1, 3, 2], 2.5],
  [[10, 9, 100], 10],
])('the median of %j is %d', (values, expected) => {
  expect(median(values)).toBe(expected);
});

it('quartiles lie between the values where they have to', () => {
  expect(quantile([1, 2, 3, 4, 5], 0.25)).toBe(2);
  expect(quantile([1, 2, 3, 4], 0.75)).toBe(3.25);
});

it('without values there is no median', () => {
  expect(median([])).toBeNaN();
});

it('the slope is that of the line nearest to the points', () => {
  expect(slope([1, 2, 3, 4].map((x) => ({ x, y: 7 - 2 * x })))).toBeCloseTo(-2);
  expect(
    slope([
      { x: 0, y: 0 },
      { x: 1, y: 3 },
      { x: 2, y: 2 },
    ]),
  ).toBeCloseTo(1);
});
