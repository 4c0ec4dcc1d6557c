import { expect, it } from 'vitest';
import { FailedAttempts } from '../../../src/http/listener/failed-attempts.ts';

const PER_MINUTE = 3;
const ADDRESS = '203.0.113.9';
const ADDRESSES_IN_MEMORY = 10_000;

function openFailedAttempts() {
  let nowMs = 1_000_000;
  const attempts = new FailedAttempts({ nowMs: () => 0, monotonicMs: () => nowMs }, PER_MINUTE);
  return {
    count: (address: string, times = 1) => Array.from({ length: times }, () => attempts.count(address)),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

it('the allowed failures get no wait, and the next one waits until the end of the minute', () => {
  const { count, pass } = openFailedAttempts();
  expect(count(ADDRESS)).toEqual([undefined]);
  pass(20_000);
  expect(count(ADDRESS, 4)).toEqual([undefined, undefined, 41, 41]);
});

it('the minute begins with the first failure, and after the wait as many failures are allowed again', () => {
  const { count, pass } = openFailedAttempts();
  count(ADDRESS);
  pass(59_999);
  expect(count(ADDRESS, 3)).toEqual([undefined, undefined, 1]);
  pass(1000);
  expect(count(ADDRESS, 4)).toEqual([undefined, undefined, undefined, 61]);
});

it('further failures do not extend the wait', () => {
  const { count, pass } = openFailedAttempts();
  count(ADDRESS, 1000);
  pass(60_000);
  expect(count(ADDRESS)).toEqual([undefined]);
});

it('the addresses of an IPv6 /64 fail together, others apart', () => {
  const { count } = openFailedAttempts();
  count('2001:db8::1', PER_MINUTE);
  expect(count('2001:DB8:0:0:ffff::2')).toEqual([61]);
  expect(count('2001:db8:0:1::1')).toEqual([undefined]);
  count('203.0.113.9', PER_MINUTE);
  expect(count('::ffff:203.0.113.9')).toEqual([61]);
  expect(count('203.0.113.10')).toEqual([undefined]);
});

it('all loopback addresses fail together', () => {
  const { count } = openFailedAttempts();
  for (let i = 1; i <= PER_MINUTE; i++) expect(count(`127.${i}.0.${i}`)).toEqual([undefined]);
  expect(count('127.200.0.1')).toEqual([61]);
});

it('a flood of addresses is held in a bounded memory, of those that failed last', () => {
  const { count } = openFailedAttempts();
  const other = (i: number) => `2001:db8:${(i >> 8).toString(16)}:${(i & 0xff).toString(16)}::1`;
  count(ADDRESS, PER_MINUTE);
  for (let i = 0; i < ADDRESSES_IN_MEMORY - 1; i++) count(other(i));
  expect(count(ADDRESS)).toEqual([61]);
  for (let i = 0; i < ADDRESSES_IN_MEMORY; i++) count(other(i));
  expect(count(ADDRESS)).toEqual([undefined]);
});

it('failures that others counted count here, and failures here are reported up to the first one above the limit', () => {
  const told: string[] = [];
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const attempts = new FailedAttempts(clock, PER_MINUTE, (block) => told.push(block));
  attempts.learn(ADDRESS, 2);
  expect([1, 2, 3, 4].map(() => attempts.count(ADDRESS))).toEqual([undefined, 61, 61, 61]);
  expect(told).toEqual([ADDRESS, ADDRESS]);
});
