import { expect, it } from 'vitest';
import type { Authentication } from '../../src/customers/keys/authenticator.ts';
import type { KeyUse } from '../../src/customers/keys/key-uses.ts';
import { goodKey, startEdge } from './support.ts';

const known: Record<string, Authentication> = {
  'good-key': goodKey('key_good'),
  'suspended-key': goodKey('key_suspended', { suspended: true }),
  'planless-key': goodKey('key_planless', { plan: 'gone' }),
  'revoked-key': { outcome: 'invalid', reason: 'revoked' },
};

it.each([
  ['is served', 'good-key', {}, 200, ['key_good']],
  ['a browser sent', 'good-key', { Origin: 'https://shop.example' }, 403, ['key_good']],
  ['belongs to a suspended customer', 'suspended-key', {}, 403, ['key_suspended']],
  ['belongs to a customer without a quota', 'planless-key', {}, 403, ['key_planless']],
  ['is revoked', 'revoked-key', {}, 401, []],
  ['is unknown', 'unknown-key', {}, 401, []],
])('a key that %s is noted as used if it is good', async (_, key, headers, status, used) => {
  const noted: string[] = [];
  const parts = { keyUses: { note: ({ key }: KeyUse) => void noted.push(key.id) } };
  const edge = await startEdge({ known, parts, settings: { browserKeys: 'reject' } });
  const answer = await edge.send(key, headers);
  expect(answer.status).toBe(status);
  expect(noted).toEqual(used);
});
