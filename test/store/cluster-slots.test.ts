import { expect, test } from 'vitest';
import {
  layoutOf,
  PART_TAGS,
  partOf,
  redirectionFrom,
  SLOTS,
  slotMapFrom,
  slotOf,
} from '../../src/store/redis/protocol/hash-slots.ts';
import { UnexpectedReplyError } from '../../src/store/redis/protocol/redis-errors.ts';

// As CLUSTER KEYSLOT gives them.
test.each([
  ['', 0],
  ['123456789', 12739],
  ['{a}b', 15495],
  ['a', 15495],
])('%j hashes to slot %d', (name, slot) => {
  expect(slotOf(name)).toBe(slot);
});

test('what belongs to a customer shares a slot', () => {
  const names = ['t:customer:{acme}', 't:window:{acme}', 't:customer-keys:{acme}'];
  expect(new Set(names.map(slotOf)).size).toBe(1);
});

test('each part of the slots has a tag of its own', () => {
  expect(PART_TAGS).toHaveLength(64);
  expect(PART_TAGS.map((tag) => partOf(slotOf(`x:{${tag}}`)))).toEqual(PART_TAGS.map((_, part) => part));
});

const A = ['10.0.0.1', 7000, 'id-a'];
const B = ['', 7001, 'id-b'];
const REPLICA = ['10.0.0.3', 7002, 'id-c', []];

test('the slots of a cluster are those of its masters, and a member without a host is at the one that was asked', () => {
  const map = slotMapFrom(
    [
      [0, 99, A, REPLICA],
      [101, SLOTS - 1, B],
    ],
    '10.0.0.9',
  );
  expect([0, 99, 100, 101, SLOTS - 1].map((slot) => map.masters[slot])).toEqual([
    '10.0.0.1:7000',
    '10.0.0.1:7000',
    undefined,
    '10.0.0.9:7001',
    '10.0.0.9:7001',
  ]);
  expect([...map.nodes.keys()]).toEqual(['10.0.0.1:7000', '10.0.0.3:7002', '10.0.0.9:7001']);
});

test('a layout is the same however it is told, and another one when a slot is elsewhere', () => {
  const layout = (...ranges: unknown[]) => layoutOf(slotMapFrom(ranges, 'h'));
  const whole = layout([0, 99, A], [100, SLOTS - 1, B]);
  expect(layout([100, SLOTS - 1, B], [0, 50, A, REPLICA], [51, 99, A])).toBe(whole);
  expect(layout([0, 100, A], [101, SLOTS - 1, B])).not.toBe(whole);
});

test.each([undefined, {}, [[]], [[0, 1]], [[0, SLOTS, A]], [[0, 1, ['h', 'port']]]])(
  'what is no list of slots is refused: %j',
  (reply) => {
    expect(() => slotMapFrom(reply, 'h')).toThrow(UnexpectedReplyError);
  },
);

test.each([
  ['MOVED 1 10.0.0.1:7000', { kind: 'moved', host: '10.0.0.1', port: 7000 }],
  ['MOVED 1 ::1:7000', { kind: 'moved', host: '::1', port: 7000 }],
  ['ASK 1 :7000', { kind: 'ask', host: '', port: 7000 }],
  ['TRYAGAIN Multiple keys request during rehashing of slot', { kind: 'try again' }],
  ['CLUSTERDOWN The cluster is down', undefined],
  ['ERR MOVED 1 h:1', undefined],
])('%j is understood', (message, redirection) => {
  expect(redirectionFrom(new Error(message))).toEqual(redirection);
});
