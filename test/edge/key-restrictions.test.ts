import { describe, expect, it } from 'vitest';
import type { Authentication } from '../../src/customers/keys/authenticator.ts';
import type { KeyUse } from '../../src/customers/keys/key-uses.ts';
import { goodKey, startEdge } from './support.ts';

const HERE = { allowedAddresses: ['127.0.0.0/8'] };
const ELSEWHERE = { allowedAddresses: ['192.0.2.0/24'] };
const BROWSER = { origin: 'https://shop.example' };
const SUSPENDED = { suspended: true };
const withoutCustomer = (key: Authentication): Authentication => ({ ...key, customer: undefined }) as Authentication;

const known: Record<string, Authentication> = {
  'free-key': goodKey('free'),
  'right-key': goodKey('right', {}, { ...HERE, scopes: ['other', 'read'] }),
  'wrong-address': goodKey('a', SUSPENDED, { ...ELSEWHERE, scopes: ['other'] }),
  'wrong-address-without-customer': withoutCustomer(goodKey('b', {}, ELSEWHERE)),
  'unreadable-address': goodKey('c', {}, { allowedAddresses: [] }),
  'wrong-scope': goodKey('d', {}, { scopes: ['other', 'reader'] }),
  'wrong-scope-suspended': goodKey('e', SUSPENDED, { scopes: ['other'] }),
  'wrong-scope-without-plan': goodKey('f', { plan: 'gone' }, { scopes: ['other'] }),
  'wrong-scope-without-customer': withoutCustomer(goodKey('g', {}, { scopes: ['other'] })),
  'unreadable-scope': goodKey('h', {}, { scopes: [] }),
};

async function startScoped(scope: string | undefined) {
  const noted: string[] = [];
  const parts = { keyUses: { note: ({ key }: KeyUse) => void noted.push(key.id) } };
  const settings = { browserKeys: 'reject' as const };
  return { edge: await startEdge({ known, parts, settings, scope }), noted };
}

describe('a key that may do less is refused by the first check that fails', () => {
  it.each([
    ['free-key', {}, 200, undefined],
    ['right-key', {}, 200, undefined],
    ['wrong-address', BROWSER, 403, 'address_not_allowed'],
    ['wrong-address-without-customer', {}, 403, 'address_not_allowed'],
    ['unreadable-address', {}, 403, 'address_not_allowed'],
    ['wrong-scope', BROWSER, 403, 'browser_use'],
    ['wrong-scope', {}, 403, 'insufficient_scope'],
    ['wrong-scope-suspended', {}, 403, 'customer_suspended'],
    ['wrong-scope-without-plan', {}, 403, 'insufficient_scope'],
    ['wrong-scope-without-customer', {}, 403, 'insufficient_scope'],
    ['unreadable-scope', {}, 403, 'insufficient_scope'],
  ])('%s %j: %d %s', async (key, headers, status, code) => {
    const { edge, noted } = await startScoped('read');
    const response = await edge.send(key, headers);
    const body = (await response.json().catch(() => ({}))) as { code?: string };
    expect({ status: response.status, code: status === 200 ? undefined : body.code }).toEqual({ status, code });
    const challenge = code === 'insufficient_scope' ? 'Bearer error="insufficient_scope", scope="read"' : null;
    expect(response.headers.get('www-authenticate')).toBe(challenge);
    // Free of charge, and not a use of the key.
    expect(edge.unitsTaken()).toBe(status === 200 ? 1 : 0);
    expect(noted).toHaveLength(status === 200 ? 1 : 0);
    expect(edge.backend.seen).toHaveLength(status === 200 ? 1 : 0);
  });
});

it('a route without a scope is open to every key whose scopes can be read', async () => {
  const { edge } = await startScoped(undefined);
  expect((await edge.send('wrong-scope')).status).toBe(200);
  const refused = await edge.send('unreadable-scope');
  expect(refused.status).toBe(403);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope"');
});
