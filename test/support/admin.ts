import { ADMIN_TOKEN, type TestGateway } from './gateway.ts';

/** A gateway in this process or another one. */
type AdminOf = Pick<TestGateway, 'admin'>;

/** One call of the admin API with the token; a body makes it a POST. */
export async function callAdmin(gateway: AdminOf, path: string, init: { method?: string; body?: unknown } = {}) {
  const answer = await fetch(gateway.admin + path, {
    method: init.method ?? (init.body === undefined ? 'GET' : 'POST'),
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(init.body !== undefined && { body: JSON.stringify(init.body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}

/** Posts a configuration file to be previewed. */
export async function postPreview(gateway: AdminOf, file: string, type = 'application/yaml') {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': type };
  const response = await fetch(`${gateway.admin}/admin/v1/config/preview`, { method: 'POST', headers, body: file });
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
}

export interface NewCustomer {
  readonly id: string;
  readonly plan: string;
  readonly requests_per_hour?: number;
}

/** Creates the customer and one key, or imports `value` as its key; resolves to the key's value. */
export async function createCustomerWithKey(gateway: AdminOf, customer: NewCustomer, value?: string): Promise<string> {
  const created = await callAdmin(gateway, '/admin/v1/customers', { body: customer });
  if (created.status !== 201) throw new Error(`customer not created: ${JSON.stringify(created)}`);
  return createKey(gateway, customer.id, value);
}

export async function createKey(gateway: AdminOf, customer: string, value?: string): Promise<string> {
  const created = await callAdmin(gateway, `/admin/v1/customers/${customer}/keys`, { body: { value } });
  if (created.status !== 201) throw new Error(`key not created: ${JSON.stringify(created)}`);
  return value ?? created.body.key;
}

export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}
