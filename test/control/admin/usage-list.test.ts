import { expect, it } from 'vitest';
import { hourly } from '../../../src/store/windows.ts';
import { NOW, overBothStores } from './support.ts';

overBothStores((start) => {
  it('has every customer with its limit, what it used of it, and the whole percents', async () => {
    const admin = await start();
    for (const [id, plan] of [
      ['busy', 'starter'],
      ['idle', 'starter'],
      ['orphan', 'dropped'],
    ] as const) {
      await admin.records.createCustomer({ id, plan, suspended: false });
    }
    const need = { grant: 'a', ahead: 0, limits: hourly(1000), holdMs: 1000, refunds: [] };
    await admin.store.windows.reserve({ customer: 'busy', need: 999, ...need });
    for (const limit of [1, 2, 1000]) {
      const items = await admin.list(`/admin/v1/usage?limit=${limit}`);
      expect(items.toSorted((a, b) => (a.customer < b.customer ? -1 : 1))).toEqual([
        {
          customer: 'busy',
          customer_name: null,
          plan: 'starter',
          current_plan: 'starter',
          suspended: false,
          limit: 1000,
          limit_source: 'plan',
          used: 999,
          percent: 99,
          period: null,
        },
        {
          customer: 'idle',
          customer_name: null,
          plan: 'starter',
          current_plan: 'starter',
          suspended: false,
          limit: 1000,
          limit_source: 'plan',
          used: 0,
          percent: 0,
          period: null,
        },
        {
          customer: 'orphan',
          customer_name: null,
          plan: 'dropped',
          current_plan: null,
          suspended: false,
          limit: null,
          limit_source: null,
          used: 0,
          percent: null,
          period: null,
        },
      ]);
    }
    await admin.close();
  });

  it('has whom this gateway refused, and why', async () => {
    const admin = await start();
    const { status, body } = await admin.call('GET', '/admin/v1/usage/refused?limit=1');
    expect([status, body]).toEqual([
      200,
      [
        {
          customer: 'acme',
          customer_name: null,
          code: 'quota_exceeded',
          count: 3,
          first_at: '2026-03-01T11:59:00.000Z',
          last_at: NOW,
          key_id: 'k',
        },
      ],
    ]);
    await admin.close();
  });
});
