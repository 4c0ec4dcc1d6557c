/** Stored sessions of the portal that another program changed: such a session is none, and breaks nothing. */
import { expect, it } from 'vitest';
import { formatPortalSession, parsePortalSession } from '../../src/store/portal-sessions.ts';
import { PORTAL_SESSION } from './contract-portal-sessions.ts';

it('is read as it was written, for the customer that the store names', () => {
  const text = formatPortalSession(PORTAL_SESSION);
  expect(parsePortalSession('acme', text)).toEqual(PORTAL_SESSION);
  expect(parsePortalSession('globex', text)?.customer).toBe('globex');
  expect(text).not.toContain('acme');
});

const stored = JSON.parse(formatPortalSession(PORTAL_SESSION));
it.each([
  '',
  'null',
  '7',
  '[]',
  '{',
  '{}',
  '{"__proto__":{"id":"x","scopes":[],"expiresAtMs":0}}',
  JSON.stringify({ ...stored, id: 1 }),
  JSON.stringify({ ...stored, customerCreatedAt: 1 }),
  JSON.stringify({ ...stored, scopes: 'keys:write' }),
  JSON.stringify({ ...stored, scopes: [['keys:write']] }),
  JSON.stringify({ ...stored, scopes: null }),
  JSON.stringify({ ...stored, user: {} }),
  JSON.stringify({ ...stored, returnUrl: 1 }),
  JSON.stringify({ ...stored, expiresAtMs: 'soon' }),
  JSON.stringify({ ...stored, expiresAtMs: 9e15 }),
])('is no session as %j', (text) => {
  expect(parsePortalSession('acme', text)).toBeUndefined();
});

it('names its customer by the store alone: members of the text do not count', () => {
  const text = JSON.stringify({ ...stored, customer: 'globex', sha256: 'x', mayWrite: true });
  expect(parsePortalSession('acme', text)).toEqual(PORTAL_SESSION);
});
