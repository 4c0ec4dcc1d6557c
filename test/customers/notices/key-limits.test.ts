/** Who is told of the limit of a key. */
import { expect, test } from 'vitest';
import { newNotice } from '../../../src/customers/notices/notice.ts';
import { ENDPOINT, openGateways } from './virtual-gateways.ts';

const LIMIT = 100;
const UNTIL_MS = Number.MAX_SAFE_INTEGER;

/** Notices of the customer's hour and of one of its keys. Resolves to where they were delivered. */
async function deliver(notifyUrl?: string) {
  const { notices, delivered, world, run } = openGateways({ seed: 1, limit: LIMIT, ...(notifyUrl && { notifyUrl }) });
  const numbers = { customer: 'acme', plan: null, limit: LIMIT, used: LIMIT, percent: 100, reset_seconds: 1 };
  for (const facts of [{ window: 'hourly' }, { window: 'key', key_id: 'key_1' }]) {
    const notice = newNotice('quota.exceeded', world.store.nowMs(), { ...numbers, ...facts });
    await notices.addOnce({ customer: 'acme', marks: [facts.window], untilMs: UNTIL_MS, notice });
  }
  await run(1);
  return { to: delivered.map(({ endpoint, body }) => `${body.data.window} ${endpoint}`).sort(), notices };
}

test('a notice of the limit of a key is sent to the URL of its customer, and not to the operator', async () => {
  const { to } = await deliver('https://acme.example/');
  expect(to).toEqual(['hourly https://acme.example/', `hourly ${ENDPOINT.url}`, 'key https://acme.example/']);
});

test('without a URL of the customer, a notice of the limit of a key is sent to nobody and does not stay', async () => {
  const { to, notices } = await deliver();
  expect(to).toEqual([`hourly ${ENDPOINT.url}`]);
  expect(await notices.counts()).toEqual({ pending: 0, dead: 0 });
});
