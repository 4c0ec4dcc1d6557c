/**
 * The refusals in a customer's own usage history were named `refusedByCode`, not `refused_by_code` as docs/openapi/public.yaml
 * says: a program that was written by the description found none.
 */
import { expect, onTestFinished, test } from 'vitest';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE, startTestGateway } from '../support/gateway.ts';

test('the refusals of a point of the public usage history are in refused_by_code', async () => {
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const open = async () => {
    const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  const first = await open();
  const key = await createCustomerWithKey(first, { id: 'acme', plan: 'enterprise', requests_per_hour: 1 });
  const headers = bearer(key);
  for (const status of [200, 429]) {
    expect((await fetch(`${first.public}/v1/conversations`, { headers })).status).toBe(status);
  }
  // What it has collected is then in the store.
  await first.close();
  const answer = await fetch(`${(await open()).public}/v1/usage/history`, { headers });
  const { hours } = (await answer.json()) as { hours: Record<string, unknown>[] };
  const refused = hours.filter((point) => point.refused !== 0);
  expect(refused).toMatchObject([{ refused: 1, refused_by_code: { quota_exceeded: 1 } }]);
  expect(refused[0]).not.toHaveProperty('refusedByCode');
});
