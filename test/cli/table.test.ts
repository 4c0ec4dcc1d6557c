import { expect, it } from 'vitest';
import { printableJson } from '../../src/api/client/printable.ts';
import { type Columns, formatDocument, formatTable, shortTime } from '../../src/cli/table.ts';

it('aligns columns, numbers to the right, and leaves cells that are not set empty', () => {
  const rows = [
    { id: 'acme', limit: 1000, suspended: false, name: 'Acme' },
    { id: 'a-longer-id', limit: null, suspended: true, name: null },
  ];
  const columns: Columns<(typeof rows)[number]> = {
    ID: 'id',
    LIMIT: ({ limit }) => limit,
    SUSPENDED: 'suspended',
    NAME: 'name',
  };
  expect(formatTable(rows, columns)).toBe(
    ['ID           LIMIT  SUSPENDED  NAME', 'acme          1000  no         Acme', 'a-longer-id         yes', ''].join(
      '\n',
    ),
  );
});

it('shows a document as one member a line, without those that are not set', () => {
  const unset = { name: null, a_long_name_of_a_member: '', absent: undefined };
  expect(formatDocument({ id: 'acme', ...unset, suspended: false, used: 0, details: { a: 1 } })).toBe(
    ['id         acme', 'suspended  false', 'used       0', 'details    {"a":1}', ''].join('\n'),
  );
});

it.each([
  ['an escape sequence', '\u001b[31mred'],
  ['a line break', 'a\nb'],
  ['a control of the second block', 'a\u009b31m'],
  ['what turns the direction of text', 'a\u202eb'],
  ['a line separator', 'a\u2028b'],
])('lets %s in a name do nothing to a terminal', (_what, name) => {
  const outputs = [formatTable([{}], { NAME: () => name }), formatDocument({ name }), printableJson({ name })];
  for (const output of outputs) {
    expect(output.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\u202e]/u);
  }
  expect(formatTable([{}], { NAME: () => name }).split('\n')).toHaveLength(3);
  expect(JSON.parse(printableJson({ name }))).toEqual({ name });
});

it.each([
  ['2026-03-01T12:00:00.123Z', '2026-03-01T12:00:00Z'],
  ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00Z'],
  ['soon', 'soon'],
])('shortens %s to %s', (time, short) => {
  expect(shortTime(time)).toBe(short);
});

it('shows times without milliseconds only in members that are times', () => {
  const at = '2026-03-01T12:00:00.123Z';
  expect(formatTable([{ created_at: at, id: at }], { CREATED: 'created_at', ID: 'id' })).toContain(
    `\n2026-03-01T12:00:00Z  ${at}\n`,
  );
});

it('shows no table without rows', () => {
  expect(formatTable<{ id: string }>([], { ID: 'id' })).toBe('');
});
