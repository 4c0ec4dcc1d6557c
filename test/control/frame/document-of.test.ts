import { expect, it } from 'vitest';
import { KEY } from '../../../src/api/admin/responses.ts';
import { documentsOf } from '../../../src/control/frame/document-of.ts';

const RECORD = { id: 'key_1', customer: 'acme', state: 'live' as const };

it('a document has the members of its schema alone, whatever else the record has', () => {
  const withSecrets = { ...RECORD, sha256: 'f'.repeat(64), key: 'tg_secret' };
  expect(Object.keys(documentsOf(KEY)(withSecrets))).toEqual(Object.keys(KEY.shape));
});

it('what a record lacks is null, and its times are in UTC', () => {
  expect(documentsOf(KEY)({ ...RECORD, createdAt: '2026-03-01T13:00:00+01:00' })).toEqual({
    ...RECORD,
    customer_name: null,
    prefix: null,
    name: null,
    created_at: '2026-03-01T12:00:00.000Z',
    expires_at: null,
    scopes: null,
    allowed_addresses: null,
    requests_per_hour: null,
    used: null,
    revoked_at: null,
    replaced_by: null,
    last_used_at: null,
  });
});
