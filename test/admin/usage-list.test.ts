import { expect, it } from 'vitest';
import { overBothStores } from './support.ts';

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
    const need = { ahead: 0, limit: 1000, holdMs: 1000, refunds: [] };
    await admin.store.windows.reserve({ customer: 'busy', need: 999, ...need });
    for (const limit of [1, 2, 1000]) {
      const items = await admin.list(`/admin/v1/usage?limit=${limit}`);
      expect(items.toSorted((a, b) => (a.customer < b.customer ? -1 : 1))).toEqual([
        { customer: 'busy', plan: 'starter', limit: 1000, used: 999, percent: 99 },
        { customer: 'idle', plan: 'starter', limit: 1000, used: 0, percent: 0 },
        { customer: 'orphan', plan: 'dropped', limit: null, used: 0, percent: null },
      ]);
    }
    await admin.close();
  });
});
