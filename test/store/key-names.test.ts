import { expect, test } from 'vitest';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';

const SHA256 = 'a'.repeat(64);
const PREFIXES = ['tollgate', 'a:b', 'with {braces}'];

test.each(PREFIXES)('a pushed name says what changed: prefix %j', (prefix) => {
  const names = redisKeyNames(prefix);
  expect(names.parseTracked(names.keyRecord(SHA256))).toEqual({ kind: 'key', sha256: SHA256 });
  for (const id of ['acme', 'a.b:c@d-e_f', 'key:x']) {
    expect(names.parseTracked(names.customerRecord(id))).toEqual({ kind: 'customer', id });
  }
  expect(names.parseTracked(names.installed)).toEqual({ kind: 'installed' });
  expect(names.parseTracked(names.installedPart('7'))).toEqual({ kind: 'installed' });
});

const tollgate = redisKeyNames('tollgate');
const other = redisKeyNames('other');

test.each([
  tollgate.keyId('k1'),
  tollgate.customerKeys('acme'),
  tollgate.window('acme'),
  tollgate.instances,
  tollgate.keyUses,
  tollgate.audit,
  other.keyRecord(SHA256),
  other.customerRecord('acme'),
  other.installed,
  'tollgate:customer:acme',
  'tollgate:customer:{acme',
])('a name of which nothing is kept in memory changes nothing: %s', (name) => {
  expect(tollgate.parseTracked(name)).toBeUndefined();
});

test('the names of a family are read as they were written, and no others', () => {
  for (const names of ['t*', ...PREFIXES].map(redisKeyNames)) {
    const families = [
      { family: names.keyRecords, name: names.keyRecord },
      { family: names.customerRecords, name: names.customerRecord },
      { family: names.keyIds, name: names.keyId },
      { family: names.customerKeySets, name: names.customerKeys },
    ];
    for (const { family, name } of families) {
      expect(family.parse(name('x:{y}'))).toBe('x:{y}');
      for (const { name: another } of families) {
        if (another !== name) expect(family.parse(another('x'))).toBeUndefined();
      }
      if (names.prefix === 't*') expect(family.pattern).toMatch(/^t\\\*:[a-z-]+:\{?\*$/);
    }
  }
});

test('a prefix is matched letter by letter', () => {
  expect(redisKeyNames('a*b?[c]\\').everyName).toBe('a\\*b\\?\\[c\\]\\\\:*');
});
