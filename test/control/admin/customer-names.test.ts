/** People know customers by name: wherever a document has the id of one, it has the name too. */
import { expect, it } from 'vitest';
import { newNotice } from '../../../src/customers/notices/notice.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import { hourly } from '../../../src/store/windows.ts';
import { CONFIG_TEXT, type JsonAnswer, overBothStores, TOKEN } from './support.ts';

overBothStores((start) => {
  it('every document with the id of a customer has its name, also of one key or notice by its id', async () => {
    const admin = await start();
    await admin.call('POST', '/admin/v1/customers', { id: 'acme', name: 'Acme Logistics', plan: 'starter' });
    const { id } = (await admin.call('POST', '/admin/v1/customers/acme/keys', {})).body;
    const { id: other } = (await admin.call('POST', '/admin/v1/customers/acme/keys', {})).body;
    await admin.store.windows.reserve({
      customer: 'acme',
      grant: 'a',
      need: 990,
      ahead: 0,
      limits: hourly(1000),
      holdMs: 1000,
      refunds: [],
    });
    await admin.store.usageHistory?.add({ counts: [], totals: [], near: [{ customer: 'acme', percent: 99 }] });
    const notices = [newNotice('quota.exceeded', 0, {}), newNotice('quota.exceeded', 0, {})] as const;
    for (const [at, notice] of notices.entries()) {
      await admin.store.notices.addOnce({ customer: 'acme', marks: [`${at}`], untilMs: Date.now() + 60_000, notice });
    }

    for (const path of [
      'usage',
      `keys?id=${id}`,
      'keys',
      'customers/acme/keys',
      'audit',
      `notices?id=${notices[1].id}`,
    ]) {
      const items = await admin.list(`/admin/v1/${path}`);
      expect(items, path).not.toEqual([]);
      for (const item of items) expect(item, path).toMatchObject({ customer: 'acme', customer_name: 'Acme Logistics' });
    }
    for (const path of ['usage/near', 'usage/refused']) {
      expect((await admin.call('GET', `/admin/v1/${path}`)).body[0], path).toMatchObject({
        customer_name: 'Acme Logistics',
      });
    }
    for (const [method, path, body] of [
      ['GET', `keys/${id}`],
      ['PATCH', `keys/${id}`, { name: 'ci' }],
      ['POST', `notices/${notices[0].id}/retry`],
    ] as const) {
      expect((await admin.call(method, `/admin/v1/${path}`, body)).body).toMatchObject({
        customer_name: 'Acme Logistics',
      });
    }
    const preview = await fetch(`${admin.origin}/admin/v1/config/preview`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/yaml' },
      body: CONFIG_TEXT.replace('1000', '5'),
    });
    expect(((await preview.json()) as JsonAnswer).closest).toMatchObject([
      { customer: 'acme', customer_name: 'Acme Logistics' },
    ]);

    expect((await admin.list(`/admin/v1/keys?id=${other}`)).map((key) => key.id)).toEqual([other]);
    expect(await admin.list('/admin/v1/keys?id=key_none')).toEqual([]);
    expect((await admin.list(`/admin/v1/notices?id=${notices[1].id}`)).map((notice) => notice.id)).toEqual([
      notices[1].id,
    ]);
    expect(await admin.list('/admin/v1/notices?id=msg_none')).toEqual([]);
    await admin.close();
  });

  it('while the store is unavailable, the refused customers are listed without names, and a read doubts no change', async () => {
    const admin = await start();
    const fail = () => Promise.reject(new StoreUnavailableError('down'));
    Object.assign(admin.records, { readCustomers: fail, findCustomerRecord: fail });
    const refused = await admin.call('GET', '/admin/v1/usage/refused');
    expect([refused.status, refused.body[0].customer_name]).toEqual([200, null]);
    const read = await admin.call('GET', '/admin/v1/customers/acme');
    expect([read.status, read.body.detail]).toEqual([503, 'The store does not respond.']);
    const change = await admin.call('PATCH', '/admin/v1/customers/acme', { name: 'New' });
    expect(change.body.detail).toMatch(/unknown whether a change was made/);
    await admin.close();
  });
});
