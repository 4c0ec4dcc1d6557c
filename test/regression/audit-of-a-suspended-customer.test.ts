/**
 * A change of a customer that was suspended until a time, such as of its name, was recorded with
 * `suspended_until: null`: the audit said that the suspension had lost its end, which it kept.
 */
import { expect, it } from 'vitest';
import { overBothStores } from '../control/admin/support.ts';

overBothStores((start) => {
  it('the audit of a change names only what it changed', async () => {
    const admin = await start();
    const until = '2030-01-31T00:00:00.000Z';
    await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter', suspended_until: until });
    await admin.call('PATCH', '/admin/v1/customers/acme', { name: 'Acme' });
    await admin.call('PATCH', '/admin/v1/customers/acme', { suspended: true });
    const [unbounded, named] = await admin.list('/admin/v1/audit');
    expect(named).toMatchObject({ details: { name: 'Acme' }, before: { name: null } });
    expect(named.details).not.toHaveProperty('suspended_until');
    expect(unbounded.details).toEqual({ suspended: true, suspended_until: null });
    expect(unbounded.before).toEqual({ suspended_until: until });
    await admin.close();
  });
});
