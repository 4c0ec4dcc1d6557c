import { describe, expect, it } from 'vitest';
import { durationParser, readTime, timeParser } from '../../src/cli/times.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

it.each([
  ['2030-01-31', '2030-01-31T00:00:00.000Z'],
  ['2030-01-31T12:30:00Z', '2030-01-31T12:30:00.000Z'],
  ['2030-01-31T12:30:00+02:00', '2030-01-31T10:30:00.000Z'],
  ['90d', '2026-05-30T12:00:00.000Z'],
  ['12h', '2026-03-02T00:00:00.000Z'],
  ['30m', '2026-03-01T12:30:00.000Z'],
  ['45s', '2026-03-01T12:00:45.000Z'],
])('%s is %s, durations from now on', (text, time) => {
  expect(readTime(text, NOW_MS, 'future')).toBe(time);
});

it('counts a duration backwards where a time in the past is meant', () => {
  expect(readTime('90d', NOW_MS, 'past')).toBe('2025-12-01T12:00:00.000Z');
});

describe.each([
  '',
  'soon',
  '2030',
  '2030-02-30',
  '2030-13-01',
  '2030-01-31T12:00',
  '90',
  '90 d',
  '-1d',
  '1.5d',
  '100000d',
  '1y',
])('"%s"', (text) => {
  it('is no time', () => {
    expect(readTime(text, NOW_MS, 'future')).toBeUndefined();
    expect(() => timeParser('future')(text)).toThrow(/2030-01-31.*90d/);
  });
});

it('a duration is seconds, within its bound', () => {
  const parse = durationParser(7 * 86_400);
  expect([parse('7d'), parse('12h'), parse('0s')]).toEqual([604_800, 43_200, 0]);
  for (const text of ['8d', '60', '2030-01-31']) expect(() => parse(text)).toThrow(/at most 7 days/);
});
