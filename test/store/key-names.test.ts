import { expect, test } from 'vitest';
import {
  customerKeysName,
  customerRecordName,
  everyName,
  installedName,
  instancesName,
  keyIdName,
  keyRecordName,
  parseTrackedName,
  windowName,
} from '../../src/store/redis/key-names.ts';

const SHA256 = 'a'.repeat(64);

test.each(['tollgate', 'a:b', 'with {braces}'])('a pushed name says what changed: prefix %j', (prefix) => {
  expect(parseTrackedName(prefix, keyRecordName(prefix, SHA256))).toEqual({ kind: 'key', sha256: SHA256 });
  for (const id of ['acme', 'a.b:c@d-e_f', 'key:x']) {
    expect(parseTrackedName(prefix, customerRecordName(prefix, id))).toEqual({ kind: 'customer', id });
  }
  expect(parseTrackedName(prefix, installedName(prefix))).toEqual({ kind: 'installed' });
});

test.each([
  keyIdName('tollgate', 'k1'),
  customerKeysName('tollgate', 'acme'),
  windowName('tollgate', 'acme'),
  instancesName('tollgate'),
  keyRecordName('other', SHA256),
  customerRecordName('other', 'acme'),
  installedName('other'),
  'tollgate:customer:acme',
  'tollgate:customer:{acme',
])('a name of which nothing is kept in memory changes nothing: %s', (name) => {
  expect(parseTrackedName('tollgate', name)).toBeUndefined();
});

test('a prefix is matched letter by letter', () => {
  expect(everyName('a*b?[c]\\')).toBe('a\\*b\\?\\[c\\]\\\\:*');
});
