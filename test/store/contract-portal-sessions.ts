/** What every store promises of the sessions of the portal. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import { MAX_PORTAL_SESSIONS, type PortalSession } from '../../src/store/portal-sessions.ts';
import type { OpenedStore } from './opened-store.ts';

const HOUR_MS = 3_600_000;

export const PORTAL_SESSION: PortalSession = {
  id: 'ps_1',
  customer: 'acme',
  customerCreatedAt: '2026-03-01T12:00:00.000Z',
  scopes: ['usage:read', 'keys:read'],
  user: 'Eva "É" __proto__ }{',
  returnUrl: 'https://example.com/#/account',
  expiresAtMs: Date.parse('2030-01-01T00:00:00Z'),
};

export function portalSessionsContract(name: string, open: () => Promise<OpenedStore>): void {
  async function openWithCustomers() {
    const { store } = await open();
    for (const id of ['acme', 'globex']) await store.records.createCustomer({ id, plan: 'starter', suspended: false });
    return { records: store.records, sessions: store.portalSessions };
  }

  describe(`${name}: portal sessions`, () => {
    test('are opened by their code once, also by calls at the same time, and then found by their cookie', async () => {
      const { sessions } = await openWithCustomers();
      expect(await sessions.add('code', 'code', PORTAL_SESSION, HOUR_MS)).toBe(true);
      const cookies = ['c1', 'c2', 'c3', 'c4'];
      const opened = await Promise.all(cookies.map((cookie) => sessions.open('code', cookie)));
      expect(opened.filter((session) => session !== undefined)).toEqual([PORTAL_SESSION]);
      const found = await Promise.all(cookies.map((cookie) => sessions.find('cookie', cookie)));
      expect(found).toEqual(opened);
      expect(await sessions.open('code', 'c5')).toBeUndefined();
      expect(await sessions.find('cookie', 'c5')).toBeUndefined();
    });

    test('are not found by a secret of another kind, nor opened by one', async () => {
      const { sessions } = await openWithCustomers();
      await sessions.add('code', 'code', PORTAL_SESSION, HOUR_MS);
      await sessions.add('token', 'token', PORTAL_SESSION, HOUR_MS);
      expect(await sessions.find('token', 'code')).toBeUndefined();
      expect(await sessions.find('cookie', 'code')).toBeUndefined();
      expect(await sessions.find('cookie', 'token')).toBeUndefined();
      expect(await sessions.open('token', 'cookie')).toBeUndefined();
      expect(await sessions.find('token', 'token')).toEqual(PORTAL_SESSION);
      for (const secret of ['', '__proto__', 'constructor'])
        expect(await sessions.find('token', secret)).toBeUndefined();
    });

    test('have neither user nor return URL if none was given', async () => {
      const { sessions } = await openWithCustomers();
      const { user: _, returnUrl: __, ...session } = PORTAL_SESSION;
      await sessions.add('token', 'token', session, HOUR_MS);
      expect(await sessions.find('token', 'token')).toEqual(session);
    });

    test('end by themselves', async () => {
      const { sessions } = await openWithCustomers();
      await sessions.add('token', 'token', PORTAL_SESSION, 300);
      await sessions.add('code', 'code', PORTAL_SESSION, 300);
      await sessions.add('code', 'opened', PORTAL_SESSION, 300);
      await sessions.open('opened', 'cookie');
      await expect.poll(() => sessions.find('token', 'token')).toBeUndefined();
      await expect.poll(() => sessions.find('cookie', 'cookie')).toBeUndefined();
      expect(await sessions.open('code', 'late')).toBeUndefined();
    });

    test('end one by one, and all of a customer at once', async () => {
      const { sessions } = await openWithCustomers();
      for (const id of ['a', 'b', 'c']) await sessions.add('token', id, PORTAL_SESSION, HOUR_MS);
      await sessions.add('code', 'code', PORTAL_SESSION, HOUR_MS);
      await sessions.add('token', 'other', { ...PORTAL_SESSION, customer: 'globex' }, HOUR_MS);
      await sessions.end('a');
      await sessions.end('nothing');
      const found = async () =>
        Promise.all(['a', 'b', 'c', 'other'].map(async (id) => (await sessions.find('token', id))?.customer));
      expect(await found()).toEqual([undefined, 'acme', 'acme', 'globex']);
      await sessions.endAll('acme');
      expect(await found()).toEqual([undefined, undefined, undefined, 'globex']);
      expect(await sessions.open('code', 'cookie')).toBeUndefined();
    });

    test('are never made for a customer that does not exist, and end with it', async () => {
      const { records, sessions } = await openWithCustomers();
      expect(await sessions.add('token', 'x', { ...PORTAL_SESSION, customer: 'nobody' }, HOUR_MS)).toBe(false);
      expect(await sessions.find('token', 'x')).toBeUndefined();
      await sessions.add('token', 'token', PORTAL_SESSION, HOUR_MS);
      for (let i = 0; i < 3; i++) await sessions.countWrite('acme', `w${i}`, 3);
      await records.deleteCustomer('acme');
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      expect(await sessions.find('token', 'token')).toBeUndefined();
      expect(await sessions.countWrite('acme', 'w4', 3)).toBe(0);
    });

    test(`are at most ${MAX_PORTAL_SESSIONS} of a customer: a further one ends the one that would end first`, async () => {
      const { sessions } = await openWithCustomers();
      await sessions.add('token', 'long', PORTAL_SESSION, 3 * HOUR_MS);
      await sessions.add('token', 'short', PORTAL_SESSION, HOUR_MS);
      for (let i = 2; i < MAX_PORTAL_SESSIONS; i++) await sessions.add('token', `t${i}`, PORTAL_SESSION, 2 * HOUR_MS);
      expect(await sessions.find('token', 'short')).toBeDefined();
      await sessions.add('token', 'last', PORTAL_SESSION, 2 * HOUR_MS);
      expect(await sessions.find('token', 'short')).toBeUndefined();
      for (const id of ['long', 't2', 'last']) expect(await sessions.find('token', id)).toBeDefined();
    });
  });

  describe(`${name}: writes in the portal`, () => {
    test('are counted for each customer up to the limit, also at the same time, then say how long to wait', async () => {
      const { sessions } = await openWithCustomers();
      const ids = Array.from({ length: 8 }, (_, at) => `w${at}`);
      const waits = await Promise.all(ids.map((id) => sessions.countWrite('acme', id, 5)));
      expect(waits.filter((wait) => wait === 0)).toHaveLength(5);
      for (const wait of waits.filter((each) => each !== 0)) {
        expect(wait).toBeGreaterThan(HOUR_MS - 60_000);
        expect(wait).toBeLessThanOrEqual(HOUR_MS);
      }
      expect(await sessions.countWrite('globex', 'g0', 5)).toBe(0);
    });
  });
}
