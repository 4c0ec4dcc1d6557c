import { expect, it } from 'vitest';
import { auditRowsOf } from '../../../src/api/admin/audit-rows.ts';
import type { AuditDocument } from '../../../src/api/admin/responses.ts';

/** Entries, the newest first, so many seconds after the first one of the audit. */
function entriesAt(...seconds: (readonly [number, Partial<AuditDocument>?])[]): AuditDocument[] {
  const entry = { actor: 'token', from: '127.0.0.1', action: 'key.import', customer: 'acme', customer_name: null };
  return seconds.map(([second, members]) => ({
    id: String(second),
    at: new Date(Date.UTC(2026, 0, 1) + 1000 * second).toISOString(),
    ...entry,
    key_id: `key_${second}`,
    details: { name: 'ci' },
    before: null,
    ...members,
  }));
}

const sizesOf = (entries: AuditDocument[]) => auditRowsOf(entries).map((row) => row.entries.length);

it('three or more customers or keys that one actor created within 10 seconds of each other are one row', () => {
  const entries = entriesAt([30], [20], [10]);
  expect(auditRowsOf(entries)).toEqual([{ ...entries[0], key_id: null, details: null, entries }]);
  expect(sizesOf(entriesAt([3, { customer: 'b' }], [2], [1], [0]))).toEqual([4]);
  expect(auditRowsOf(entriesAt([3, { customer: 'b' }], [2], [1]))).toMatchObject([{ customer: null }]);
});

it.each<[string, AuditDocument[], number[]]>([
  ['two of them', entriesAt([1], [0]), [1, 1]],
  ['after more than 10 seconds', entriesAt([31], [21], [11], [0.999]), [3, 1]],
  ['by another actor', entriesAt([3], [2], [1], [0, { actor: 'token:anna' }]), [3, 1]],
  ['from another address', entriesAt([3], [2], [1], [0, { from: '10.0.0.1' }]), [3, 1]],
  ['by another action', entriesAt([3], [2], [1], [0, { action: 'key.create' }]), [3, 1]],
  ['of what no import does', entriesAt(...[3, 2, 1].map((at) => [at, { action: 'key.revoke' }] as const)), [1, 1, 1]],
])('a row is not shared: %s', (_, entries, sizes) => {
  expect(sizesOf(entries)).toEqual(sizes);
});
