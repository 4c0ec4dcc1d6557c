import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseCsv } from '../../src/cli/csv.ts';

function recordsOf(text: string) {
  const records = parseCsv(text);
  if ('what' in records) throw new Error(`line ${records.line}: ${records.what}`);
  return records;
}

const fieldsOf = (text: string) => recordsOf(text).map(({ fields }) => fields);

it.each([
  ['nothing', '', []],
  ['one field', 'a', [['a']]],
  [
    'lines that end with LF',
    'a,b\nc,d\n',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  [
    'lines that end with CRLF',
    'a,b\r\nc,d\r\n',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  [
    'a last line without an end',
    'a,b\nc,d',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  [
    'empty fields',
    ',\n,,',
    [
      ['', ''],
      ['', '', ''],
    ],
  ],
  ['a quoted comma', '"a,b",c', [['a,b', 'c']]],
  ['a quoted quote', '"say ""hi""",""', [['say "hi"', '']]],
  ['a quoted line break', '"a\r\nb",c', [['a\r\nb', 'c']]],
  ['one empty quoted field', '""', [['']]],
  ['spaces, which belong to the field', ' a , b ', [[' a ', ' b ']]],
  ['empty lines, which are none', '\na\n\r\n\nb\n\n', [['a'], ['b']]],
])('reads %s', (_what, text, fields) => {
  expect(fieldsOf(text)).toEqual(fields);
});

it('knows the line on which a record begins, over quoted line breaks and empty lines', () => {
  expect(recordsOf('a\n\n"b\n\nb",c\r\nd').map(({ line }) => line)).toEqual([1, 3, 6]);
});

it.each([
  ['a quote inside a plain field', 'a\nb"c', 2, /not in quotes/],
  ['a lone carriage return', 'a\rb', 1, /carriage return/],
  ['text after a closing quote', 'a\n\n"b"c', 3, /after the closing quote/],
  ['a quote that is never closed', 'a\n"b\nc', 2, /never closed/],
])('refuses %s, naming the line and not the text', (_what, text, line, message) => {
  expect(parseCsv(text)).toEqual({ line, what: expect.stringMatching(message) });
});

it('reads back whatever was written by the rules of RFC 4180', () => {
  const write = (field: string) =>
    /[",\r\n]/.test(field) || field === '' ? `"${field.replaceAll('"', '""')}"` : field;
  const field = fc.string({ unit: fc.constantFrom('a', 'ü', ' ', ',', '"', '\n', '\r', '\r\n') });
  const records = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 6 });
  fc.assert(
    fc.property(records, fc.constantFrom('\n', '\r\n'), (rows, end) => {
      const text = rows.map((row) => row.map(write).join(',') + end).join('');
      expect(fieldsOf(text)).toEqual(rows);
    }),
  );
});
