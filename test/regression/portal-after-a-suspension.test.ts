/**
 * The session that a link opened showed a customer as suspended although its suspension had ended by itself: the page hid
 * every action on keys until it was loaded again.
 */
import { expect, it } from 'vitest';
import { send } from '../console/support.ts';
import { codeOf, createCustomer, createLink, exchange, overEachStore, sessionOf } from '../portal/support.ts';
import { callAdmin } from '../support/admin.ts';

overEachStore('a suspension that has ended', (system) => {
  it('is none in the session that a link opens', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'acme');
    const endsMs = Date.now() + 4000;
    const body = { suspended_until: new Date(endsMs).toISOString() };
    const suspended = await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body });
    expect(suspended.body.suspended).toBe(true);
    const isSuspended = async () => (await callAdmin(gateway, '/admin/v1/customers/acme')).body.suspended;
    await expect.poll(isSuspended).toBe(false);
    const opened = await exchange(gateway.portal, codeOf(await createLink(gateway, 'acme')));
    expect(opened.body.suspended).toBe(false);
    expect((await send(gateway.portal, 'POST', '/portal/v1/keys', sessionOf(opened), '{}')).status).toBe(201);
  });
});
