import { afterAll, beforeAll, expect, it } from 'vitest';
import { startAdmin, type TestAdmin } from './support.ts';

let admin: TestAdmin;
beforeAll(async () => {
  admin = await startAdmin();
  const write = (record: { id: string; plan: string; requestsPerHour?: number | 'invalid' }) =>
    admin.records.createCustomer({ suspended: false, ...record });
  await write({ id: 'by-plan', plan: 'starter' });
  await write({ id: 'vip', plan: 'starter', requestsPerHour: 5 });
  await write({ id: 'own', plan: 'enterprise', requestsPerHour: 5 });
  await write({ id: 'lost', plan: 'gone' });
  await write({ id: 'numberless', plan: 'enterprise' });
  await write({ id: 'odd', plan: 'starter', requestsPerHour: 'invalid' });
});
afterAll(() => admin.close());

it.each([
  ['by-plan', 1000, 'plan', 'gateway.yaml:41'],
  ['vip', 120_000, 'override', 'gateway.yaml:50'],
  ['own', 5, 'customer', 'customer record: requests_per_hour'],
])('the limit of %s is explained by where it was set', async (customer, limit, source, origin) => {
  const { status, body } = await admin.call('GET', `/admin/v1/customers/${customer}/explain`);
  expect(status).toBe(200);
  expect(body).toEqual({ customer, limit, limit_source: source, limit_problem: null, origin });
});

it.each([
  ['lost', 'customer record: plan', 'no plan "gone"'],
  ['numberless', 'customer record: requests_per_hour', 'no requests_per_hour'],
  ['odd', 'customer record: requests_per_hour', 'not an integer'],
])('that %s has no limit is explained by what would have to say it', async (customer, origin, problem) => {
  const { status, body } = await admin.call('GET', `/admin/v1/customers/${customer}/explain`);
  expect(status).toBe(200);
  expect(body).toEqual({
    customer,
    limit: null,
    limit_source: null,
    limit_problem: expect.stringContaining(problem),
    origin,
  });
});

it.each(['nobody', '-a', '%ff'])('%s is 404', async (id) => {
  expect((await admin.call('GET', `/admin/v1/customers/${id}/explain`)).status).toBe(404);
});
