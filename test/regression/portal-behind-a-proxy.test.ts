/**
 * The portal took the address of the TLS proxy in front of it for that of every user. So 31 made-up codes a minute from
 * anywhere turned "401: the session has ended" of all users into 429, which a page does not take for the end of its
 * session, and the audit could not tell who had opened a link.
 */
import { expect, it } from 'vitest';
import { codeOf, createCustomer, createLink, exchange, overEachStore } from '../portal/support.ts';
import { callAdmin } from '../support/admin.ts';

const ATTACKER = { 'x-forwarded-for': '203.0.113.66' };
const USER = { 'x-forwarded-for': '198.51.100.9, 203.0.113.7' };

overEachStore(
  'behind a proxy of listen.trusted_proxies, the portal',
  (system) => {
    it('counts failed attempts by the address of the client, and has it in the audit', async () => {
      const gateway = system().gateway;
      await createCustomer(gateway, 'acme');
      const code = codeOf(await createLink(gateway, 'acme'));
      expect((await exchange(gateway.portal, code, USER)).status).toBe(200);
      for (let i = 0; i < 31; i++) await exchange(gateway.portal, 'guess', ATTACKER);
      expect((await exchange(gateway.portal, 'guess', ATTACKER)).status).toBe(429);
      expect((await exchange(gateway.portal, code, USER)).status).toBe(401);
      const { body } = await callAdmin(gateway, '/admin/v1/audit?customer=acme&action=portal_session.open');
      expect(body.items).toMatchObject([{ from: '203.0.113.7' }]);
    });
  },
  { listen: { trusted_proxies: ['127.0.0.1'] } },
);

overEachStore('without listen.trusted_proxies, the portal', (system) => {
  it('ignores X-Forwarded-For, which its client chose', async () => {
    const { gateway } = system();
    for (let i = 0; i < 32; i++) await exchange(gateway.portal, 'guess', { 'x-forwarded-for': `203.0.113.${i}` });
    expect((await exchange(gateway.portal, 'guess', USER)).status).toBe(429);
  });
});
