import { describe, expect, test } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { STORES, startTestGateway } from '../support/gateway.ts';

describe.each(STORES)('over $name', (kind) => {
  test('the last use of a key is known at the latest when the gateway that saw it has stopped', async () => {
    await using opened = new AsyncDisposableStack();
    const store = await kind.start();
    opened.defer(() => store.close());
    const backend = await startBackend();
    opened.defer(() => backend.close());
    const start = () => startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    const first = await start();
    opened.defer(() => first.close());
    const key = await createCustomerWithKey(first, { id: 'acme', plan: 'starter' });
    await callAdmin(first, '/admin/v1/customers/acme/keys', { body: { name: 'idle' } });
    const before = Date.now();
    for (const token of [key, `${key}x`]) {
      await fetch(`${first.public}/v1/conversations`, { headers: bearer(token) });
    }
    const after = Date.now();
    await first.close();

    const second = await start();
    opened.defer(() => second.close());
    const { body } = await callAdmin(second, '/admin/v1/customers/acme/keys');
    const [used, idle] = body.items[0].name === 'idle' ? body.items.toReversed() : body.items;
    expect(Date.parse(used.last_used_at)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(used.last_used_at)).toBeLessThanOrEqual(after);
    expect(idle).toMatchObject({ name: 'idle', last_used_at: null });
  });
});
