import { describe, expect, it } from 'vitest';
import { readImportFile } from '../../src/cli/import-file.ts';
import { keysLayout } from '../../src/cli/keys-import.ts';
import { createApiKey, sha256Hex } from '../../src/formats/api-key.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const VALUE = 'marked.key-of/somebody+else_9c41==';
const OTHER_VALUE = 'another.key-of+somebody';
const DIGEST = sha256Hex(VALUE);

const read = (text: string) => readImportFile(Buffer.from(text), keysLayout(NOW_MS));
const faultsOf = (text: string) => read(text).faults.map(({ line, what }) => `${line}: ${what}`);

it('takes values and digests, each with a name and an expiry or without', () => {
  const generated = createApiKey();
  const { items: keys, faults } = read(
    [
      'name,customer,value,sha256,expires_at',
      `"Acme, old",acme,${VALUE},,2030-01-31T00:00:00Z`,
      `,globex,${generated},,`,
      `ci,acme,,${'AB'.repeat(32)},`,
      '',
    ].join('\r\n'),
  );
  expect(faults).toEqual([]);
  expect(keys).toEqual([
    { line: 2, customer: 'acme', value: VALUE, name: 'Acme, old', expires_at: '2030-01-31T00:00:00.000Z' },
    { line: 3, customer: 'globex', value: generated },
    { line: 4, customer: 'acme', sha256: 'ab'.repeat(32), name: 'ci' },
  ]);
});

it('takes scopes and allowed addresses, as texts of CSV and as lists of JSON', () => {
  const [scopes, allowed_addresses] = [
    ['read', 'write'],
    ['10.0.0.0/8', '2001:db8::1'],
  ];
  const csv = `customer,value,scopes,allowed_addresses\nacme,${VALUE},read write,"10.0.0.0/8, 2001:db8::1"\nacme,${OTHER_VALUE},,\n`;
  expect(read(csv)).toMatchObject({ faults: [], items: [{ scopes, allowed_addresses }, {}] });
  expect(read(csv).items[1]?.scopes).toBeUndefined();
  const json = JSON.stringify({ customer: 'acme', value: VALUE, scopes, allowed_addresses });
  expect(read(json)).toMatchObject({ faults: [], items: [{ scopes, allowed_addresses }] });
  expect(faultsOf(`customer,value,scopes,allowed_addresses\nacme,${VALUE},re"ad,"10.0.0.0/8,"\n`)).toEqual([
    '2: a quote or a lone carriage return in a field that is not in quotes',
  ]);
  expect(faultsOf(`customer,value,scopes,allowed_addresses\nacme,${VALUE},a\\b,"10.0.0.0/8,"\n`)).toEqual([
    '2: scopes.0: must be 1 to 128 visible ASCII characters without " and \\',
    '2: allowed_addresses.1: must be an IP address or a CIDR block such as 10.0.0.0/8',
  ]);
});

it('takes the limit of a key, and names one that is no number', () => {
  const header = 'customer,value,requests_per_hour\n';
  const { faults, items } = read(`${header}acme,${VALUE},70\nacme,${OTHER_VALUE},\n`);
  expect([faults, items[0]?.requests_per_hour, items[1]?.requests_per_hour]).toEqual([[], 70, undefined]);
  expect(faultsOf(`${header}acme,${VALUE},many\nacme,${OTHER_VALUE},0\n`)).toEqual([
    '2: requests_per_hour: must be a number',
    '3: requests_per_hour: must be at least 1',
  ]);
  expect(faultsOf(`customer,value,root\nacme,${VALUE},key_1\n`)[0]).toContain('a column that is none of');
});

it('takes dates and durations as expiries', () => {
  const { items } = read(`customer,value,expires_at\nacme,${VALUE},2030-01-31\nacme,${OTHER_VALUE},90d\n`);
  expect(items.map(({ expires_at: at }) => at)).toEqual(['2030-01-31T00:00:00.000Z', '2026-05-30T12:00:00.000Z']);
});

describe('JSON Lines', () => {
  it('are read like CSV, with null for absent members', () => {
    const { items, faults } = read(
      `{"customer":"acme","value":"${VALUE}","name":null}\r\n\n{"sha256":"${'AB'.repeat(32)}","customer":"globex"}`,
    );
    expect(faults).toEqual([]);
    expect(items).toEqual([
      { line: 1, customer: 'acme', value: VALUE },
      { line: 3, customer: 'globex', sha256: 'ab'.repeat(32) },
    ]);
  });

  it.each([
    ['cut off', `{"customer":"acme","value":"${VALUE}`, /^2: it is not one complete JSON object/],
    ['a list', `["acme","${VALUE}"]`, /^2: it is not one complete JSON object/],
    ['with an unknown member', `{"customer":"acme","value":"${VALUE}","plan":"x"}`, /^2: "plan": unknown member/],
    ['with a key for a name', `{"customer":"acme","${VALUE}":"x"}`, /^2: a name that is not shown: unknown member/],
    ['with a number', `{"customer":7,"value":"${VALUE}"}`, /^2: customer: must be a string/],
    [
      'with an inherited name',
      `{"customer":"acme","value":"${VALUE}","__proto__":"x"}`,
      /^2: "__proto__": unknown member/,
    ],
  ])('a line that is %s is a fault that repeats nothing of the key', (_what, line, fault) => {
    const faults = faultsOf(`{"customer":"acme","value":"${OTHER_VALUE}"}\n${line}\n`);
    expect(faults[0]).toMatch(fault);
    expect(JSON.stringify(faults)).not.toContain(VALUE);
  });
});

it('takes the byte order mark with which spreadsheets begin a file', () => {
  expect(read(`\ufeffcustomer,value\nacme,${VALUE}\n`).items).toHaveLength(1);
});

it.each([
  ['an empty file', '', /^1: there is no header line/],
  ['a header that is a line of keys', `acme,${VALUE}\n`, /^1: the header line has a column that is none of customer/],
  ['semicolons', `customer;value\nacme;${VALUE}\n`, /^1: .*commas must separate them/],
  ['a column twice', 'customer,value,value\n', /^1: the header line names a column twice/],
  ['no column customer', `value\n${VALUE}\n`, /^1: the header line has no column customer/],
  ['no column for keys', 'customer,name\nacme,ci\n', /^1: .*neither a column value nor a column sha256/],
  ['broken quotes', `customer,value\nacme,"${VALUE}\n`, /^2: a quoted field/],
])('refuses %s as a whole', (_what, text, fault) => {
  const { items: keys, faults } = read(text);
  expect(keys).toEqual([]);
  expect(faults.map(({ line, what }) => `${line}: ${what}`)).toEqual([expect.stringMatching(fault)]);
});

it('refuses what is not UTF-8', () => {
  const { faults } = readImportFile(
    Buffer.from('customer,value,name\nacme,12345678,\xfc\n', 'latin1'),
    keysLayout(NOW_MS),
  );
  expect(faults).toEqual([{ line: 1, what: 'the file is not UTF-8 text' }]);
});

describe('a line', () => {
  const mistyped = createApiKey().replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  it.each([
    ['a field too few', 'acme', /it has 1 fields where the header line has 5/],
    ['no customer', `,${VALUE},,,`, /customer: missing/],
    ['what is no customer id', `../acme,${VALUE},,,`, /customer: must be 1 to 128/],
    ['neither value nor digest', 'acme,,,ci,', /value, sha256: exactly one/],
    ['both value and digest', `acme,${VALUE},${DIGEST},,`, /value, sha256: exactly one/],
    ['a value of 7 characters', 'acme,1234567,,,', /value: must be 8 to 512/],
    ['a value that no header can carry', 'acme,1234567 9,,,', /value: must be 8 to 512/],
    ['a mistyped generated key', `acme,${mistyped},,,`, /value: .*checksum/],
    ['a digest that is cut off', `acme,,${DIGEST.slice(1)},,`, /sha256: must be the SHA-256 of the whole key in 64/],
    ['a name with a control character', `acme,${VALUE},,"a\nb",`, /name: must not have control characters/],
    ['a name of 201 characters', `acme,${VALUE},,${'a'.repeat(201)},`, /name: must have at most 200/],
    ['an expiry in the past', `acme,${VALUE},,,2026-03-01T11:59:59Z`, /expires_at: must be in the future/],
    ['an expiry that is no time', `acme,${VALUE},,,soon`, /expires_at: must be an ISO 8601 time in UTC/],
    [
      'an expiry on a day that does not exist',
      `acme,${VALUE},,,2030-02-30`,
      /expires_at: must be an ISO 8601 time in UTC/,
    ],
  ])('with %s is a fault that repeats nothing of the key', (_what, line, fault) => {
    const { items: keys, faults } = read(`customer,value,sha256,name,expires_at\n\n${line}\n`);
    expect(keys).toEqual([]);
    expect(faults).toEqual([{ line: 3, what: expect.stringMatching(fault) }]);
    for (const secret of [VALUE, DIGEST, mistyped]) expect(JSON.stringify(faults)).not.toContain(secret);
  });
});

it('finds all faults of all lines', () => {
  expect(faultsOf(`customer,value,name\nacme,short,"\t"\nacme,${VALUE},ci\n,${OTHER_VALUE},\n`)).toEqual([
    expect.stringMatching(/^2: value: /),
    expect.stringMatching(/^2: name: /),
    expect.stringMatching(/^4: customer: /),
  ]);
});

it('finds a key that is there twice, once by value and once by digest', () => {
  expect(
    faultsOf(`customer,value,sha256\nacme,${VALUE},\nglobex,${OTHER_VALUE},\nglobex,,${DIGEST.toUpperCase()}\n`),
  ).toEqual(['4: it has the same key as line 2']);
});
