import { expect, test } from 'vitest';
import {
  auditName,
  CUSTOMER_KEYS,
  CUSTOMER_RECORDS,
  customerKeysName,
  customerRecordName,
  everyName,
  installedName,
  installedPartName,
  instancesName,
  KEY_IDS,
  KEY_RECORDS,
  keyIdName,
  keyRecordName,
  keyUsesName,
  parseTrackedName,
  windowName,
} from '../../src/store/redis/protocol/key-names.ts';

const SHA256 = 'a'.repeat(64);

test.each(['tollgate', 'a:b', 'with {braces}'])('a pushed name says what changed: prefix %j', (prefix) => {
  expect(parseTrackedName(prefix, keyRecordName(prefix, SHA256))).toEqual({ kind: 'key', sha256: SHA256 });
  for (const id of ['acme', 'a.b:c@d-e_f', 'key:x']) {
    expect(parseTrackedName(prefix, customerRecordName(prefix, id))).toEqual({ kind: 'customer', id });
  }
  expect(parseTrackedName(prefix, installedName(prefix))).toEqual({ kind: 'installed' });
  expect(parseTrackedName(prefix, installedPartName(prefix, '7'))).toEqual({ kind: 'installed' });
});

test.each([
  keyIdName('tollgate', 'k1'),
  customerKeysName('tollgate', 'acme'),
  windowName('tollgate', 'acme'),
  instancesName('tollgate'),
  keyUsesName('tollgate'),
  auditName('tollgate'),
  keyRecordName('other', SHA256),
  customerRecordName('other', 'acme'),
  installedName('other'),
  'tollgate:customer:acme',
  'tollgate:customer:{acme',
])('a name of which nothing is kept in memory changes nothing: %s', (name) => {
  expect(parseTrackedName('tollgate', name)).toBeUndefined();
});

test.each([
  [KEY_RECORDS, keyRecordName],
  [CUSTOMER_RECORDS, customerRecordName],
  [KEY_IDS, keyIdName],
  [CUSTOMER_KEYS, customerKeysName],
])('the names of a family are read as they were written, and no others: %#', (family, name) => {
  const families = [keyRecordName, customerRecordName, keyIdName, customerKeysName];
  for (const prefix of ['tollgate', 'a:b', 'with {braces}']) {
    expect(family.parse(prefix, name(prefix, 'x:{y}'))).toBe('x:{y}');
    for (const other of families) {
      if (other !== name) expect(family.parse(prefix, other(prefix, 'x'))).toBeUndefined();
    }
  }
  expect(family.pattern('t*')).toMatch(/^t\\\*:[a-z-]+:\{?\*$/);
});

test('a prefix is matched letter by letter', () => {
  expect(everyName('a*b?[c]\\')).toBe('a\\*b\\?\\[c\\]\\\\:*');
});
