import { expect, test } from 'vitest';
import { customerEndpoint, operatorEndpoint } from '../../../src/customers/notices/endpoints.ts';
import { newWebhookSecret, parseWebhookSecret } from '../../../src/formats/webhook-signature.ts';

const [NEW, FORMER] = [newWebhookSecret(), newWebhookSecret()];
const KEYS = [NEW, FORMER].map(parseWebhookSecret);
const url = 'https://hooks.example/';

function endpointOf(notifyUrl: string | undefined, ...secrets: string[]) {
  const record = { id: 'acme', plan: 'starter', suspended: false, ...(notifyUrl !== undefined && { notifyUrl }) };
  return customerEndpoint(record, { inForce: async (customer) => (customer === 'acme' ? secrets : []) });
}

test("a customer's endpoint has its URL and the secrets in force, and never reaches a private network", async () => {
  expect(await endpointOf(url, NEW, FORMER)).toEqual({ url, secrets: KEYS, allowPrivate: false });
});

test('a customer without a URL or a secret has no endpoint', async () => {
  expect(await endpointOf(undefined, NEW)).toBeUndefined();
  expect(await endpointOf(url)).toBeUndefined();
});

test.each(['http://hooks.example/', 'https://127.0.0.1/', 'x', 'x'.repeat(100_000)])(
  'a customer has no endpoint if another program wrote %.30s',
  async (text) => expect(await endpointOf(text, NEW)).toBeUndefined(),
);

test('a secret that another program damaged signs nothing', async () => {
  expect(await endpointOf(url, 'damaged', FORMER)).toMatchObject({ secrets: [KEYS[1]] });
  expect(await endpointOf(url, 'damaged')).toBeUndefined();
});

test('an endpoint of the configuration keeps what the operator allows', () => {
  const endpoint = { url: 'http://127.0.0.1/', allowPrivate: true };
  expect(operatorEndpoint({ ...endpoint, secrets: [NEW, FORMER] })).toEqual({ ...endpoint, secrets: KEYS });
});
