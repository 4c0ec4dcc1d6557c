import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressBlocks } from '../../src/formats/address-block.ts';
import {
  isWithinRestrictions,
  type KeyRestrictions,
  parseAllowedAddresses,
  parseScopes,
} from '../../src/formats/key-restrictions.ts';
import { keyFields, keyRecordFrom } from '../../src/store/record-fields.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('the field scopes', () => {
  it.each([
    ['one', 'messages:read', ['messages:read']],
    ['several, with more spaces than needed', ' read  write ', ['read', 'write']],
    ['a name that objects have', '__proto__ constructor', ['__proto__', 'constructor']],
    ['fifty', numbers(50).join(' '), numbers(50).map(String)],
  ])('may have %s', (_, text, scopes) => {
    expect(parseScopes(text)).toEqual(scopes);
  });

  it.each([
    ['nothing but spaces', '  '],
    ['another white space', 'read\twrite'],
    ['a quote', 'read"'],
    ['a backslash', 'a\\b'],
    ['letters beyond ASCII', 'lesén'],
    ['fifty-one', numbers(51).join(' ')],
    ['one of 129 characters', 'x'.repeat(129)],
    ['a megabyte', 'read '.repeat(200_000)],
    ['more than 8192 bytes of spaces', `read${' '.repeat(8192)}`],
  ])('is unreadable with %s', (_, text) => {
    expect(parseScopes(text)).toEqual([]);
  });
});

describe('the field allowed_addresses', () => {
  it.each([
    ['one', '10.0.0.1', ['10.0.0.1']],
    ['several, with spaces', '10.0.0.0/8, 2001:db8::/32', ['10.0.0.0/8', '2001:db8::/32']],
    ['IPv4-mapped ones', '::ffff:10.0.0.1,::ffff:10.0.0.0/104', ['::ffff:10.0.0.1', '::ffff:10.0.0.0/104']],
    [
      'fifty',
      numbers(50)
        .map((end) => `10.0.0.${end}`)
        .join(),
      numbers(50).map((end) => `10.0.0.${end}`),
    ],
  ])('may have %s', (_, text, addresses) => {
    expect(parseAllowedAddresses(text)).toEqual(addresses);
  });

  it.each([
    ['white space', ' '],
    ['an empty entry', '10.0.0.1,'],
    ['a host name', 'office.example'],
    ['a prefix that is too long', '10.0.0.0/33'],
    ['no prefix after the slash', '10.0.0.0/'],
    ['a zone', 'fe80::1%eth0'],
    ['an octet that is none', '10.0.0.256'],
    ['a range', '10.0.0.1-10.0.0.9'],
    ['spaces instead of commas', '10.0.0.1 10.0.0.2'],
    ['__proto__', '__proto__'],
    [
      'fifty-one',
      numbers(51)
        .map((end) => `10.0.0.${end}`)
        .join(),
    ],
    ['a megabyte', '10.0.0.1,'.repeat(120_000)],
  ])('is unreadable with %s', (_, text) => {
    expect(parseAllowedAddresses(text)).toEqual([]);
  });
});

it('what is written of a key is read back the same, and only an unset field means no restriction', () => {
  const lists = { scopes: ['read', 'write'], allowedAddresses: ['10.0.0.0/8', '2001:db8::1'] };
  const key = { id: 'k', customer: 'acme', ...lists };
  expect(keyRecordFrom(keyFields(key))).toEqual(key);
  const bare = { id: 'k', customer: 'acme' };
  expect(keyRecordFrom({ ...bare, scopes: '', allowed_addresses: null })).toEqual(bare);
  expect(keyRecordFrom({ ...bare, scopes: ' ', allowed_addresses: '-' })).toEqual({
    ...bare,
    scopes: [],
    allowedAddresses: [],
  });
  // Their text would be empty, and so unset the field.
  for (const name of ['scopes', 'allowedAddresses'])
    expect(() => keyFields({ [name]: [] })).toThrow('restricted to nothing');
});

const SCOPES = ['a', 'b', 'c'];
const ADDRESSES = ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.3', '::ffff:10.1.2.3', '192.0.2.1', '2001:db8::/32', '::/0'];
const CLIENTS = ['10.9.9.9', '10.1.9.9', '10.1.2.3', '192.0.2.1', '2001:db8::1', '2001:db9::1'];
const restrictions: fc.Arbitrary<KeyRestrictions> = fc.record(
  { scopes: fc.subarray(SCOPES), allowedAddresses: fc.subarray(ADDRESSES) },
  { requiredKeys: [] },
);
const maySend = ({ scopes, allowedAddresses }: KeyRestrictions, scope: string, client: string) =>
  (scopes?.includes(scope) ?? true) &&
  (allowedAddresses === undefined || new AddressBlocks(allowedAddresses).has(client));

it('restrictions are within others only if they allow nothing more, and always within themselves', () => {
  const property = fc.property(restrictions, restrictions, (after, before) => {
    expect(isWithinRestrictions(after, after)).toBe(true);
    if (!isWithinRestrictions(after, before)) return;
    for (const scope of SCOPES) {
      for (const client of CLIENTS)
        if (maySend(after, scope, client)) expect(maySend(before, scope, client)).toBe(true);
    }
  });
  fc.assert(property, { numRuns: 1000 });
  expect(isWithinRestrictions({ scopes: ['a'] }, { scopes: ['a', 'b'] })).toBe(true);
  expect(isWithinRestrictions({}, { scopes: ['a', 'b'] })).toBe(false);
  expect(isWithinRestrictions({}, { allowedAddresses: ['::/0'] })).toBe(false);
  const narrow = { allowedAddresses: ['10.1.2.3', '10.1.0.0/16'] };
  expect(isWithinRestrictions(narrow, { allowedAddresses: ['10.0.0.0/8'] })).toBe(true);
  expect(isWithinRestrictions({ allowedAddresses: ['10.0.0.0/8'] }, narrow)).toBe(false);
});
