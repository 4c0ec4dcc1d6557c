import { describe, expect, it } from 'vitest';
import { isUnusedSince, isValidKey, keyState } from '../../../src/customers/keys/key-state.ts';
import { expiryMsOf, type KeyRecord } from '../../../src/store/record-fields.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

const key = (record: Partial<KeyRecord> = {}): KeyRecord => ({ id: 'k', customer: 'c', ...record });

describe('a key', () => {
  it.each([
    ['live', key()],
    ['live', key({ expiresAt: '2026-03-01T12:00:00.001Z' })],
    ['live', key({ expiresAt: '2026-03-01T13:00:01+01:00' })],
    ['rotated', key({ replacedBy: 'other', expiresAt: '2026-03-02T00:00:00Z' })],
    ['expired', key({ replacedBy: 'other', expiresAt: '2026-03-01T12:00:00Z' })],
    ['revoked', key({ replacedBy: 'other', revokedAt: '2026-01-01T00:00:00Z' })],
    ['expired', key({ expiresAt: '2026-03-01T12:00:00Z' })],
    ['expired', key({ expiresAt: '2026-03-01T13:00:00+01:00' })],
    ['expired', key({ expiresAt: 'some day' })],
    ['expired', key({ expiresAt: '2027-02-30T00:00:00Z' })],
    ['expired', key({ expiresAt: '2027-01-01T00:00:00' })],
    ['revoked', key({ revokedAt: 'some day' })],
    ['revoked', key({ revokedAt: '2026-01-01T00:00:00Z', expiresAt: '2026-01-02T00:00:00Z' })],
  ])('is %s with %j', (state, record) => {
    expect(keyState(record, NOW_MS)).toBe(state);
    expect(isValidKey(record, NOW_MS)).toBe(state === 'live' || state === 'rotated');
  });

  it('without an expiry never ends', () => expect(expiryMsOf(key())).toBeUndefined());
});

describe('a key is unused', () => {
  const times = { sinceMs: NOW_MS - 1000, nowMs: NOW_MS };
  const created = (agoMs: number) => ({ createdAt: new Date(NOW_MS - agoMs).toISOString() });

  it.each([
    [true, 'last used as long ago', key(), NOW_MS - 1000],
    [false, 'last used later', key(), NOW_MS - 999],
    [true, 'rotated', key({ replacedBy: 'other', expiresAt: '2026-03-02T00:00:00Z' }), undefined],
    [false, 'last used later, created before', key(created(5000)), NOW_MS - 999],
    [true, 'last used before it was created again elsewhere', key(created(0)), NOW_MS - 1000],
    [true, 'never used, created as long ago', key(created(1000)), undefined],
    [false, 'never used, created later', key(created(999)), undefined],
    [true, 'never used, nobody knows when created', key(), undefined],
    [true, 'never used, created at what is no time', key({ createdAt: 'yesterday' }), undefined],
    [false, 'revoked', key({ revokedAt: '2026-01-01T00:00:00Z' }), undefined],
    [false, 'expired', key({ expiresAt: '2026-01-01T00:00:00Z' }), undefined],
  ])('(%s) when it was %s', (unused, _when, record, lastUsedMs) => {
    expect(isUnusedSince(record, lastUsedMs, times)).toBe(unused);
  });
});
