import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
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
  expect(body).toMatchObject({ customer, limit, limit_source: source, limit_problem: null, origin });
  expect(body.usage).toMatchObject({ limit, used: 3 });
});

it.each([
  ['lost', 'customer record: plan', 'no plan "gone"'],
  ['numberless', 'customer record: requests_per_hour', 'no requests_per_hour'],
  ['odd', 'customer record: requests_per_hour', 'not an integer'],
])('that %s has no limit is explained by what would have to say it', async (customer, origin, problem) => {
  const { status, body } = await admin.call('GET', `/admin/v1/customers/${customer}/explain`);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    customer,
    usage: null,
    limit: null,
    limit_source: null,
    limit_problem: expect.stringContaining(problem),
    origin,
  });
});

it('the verdict says whether its requests are admitted now: not without a valid key', async () => {
  const verdict = async () => (await admin.call('GET', '/admin/v1/customers/by-plan/explain')).body;
  const refused = { admitted: false, verdict: 'Its requests are refused now: it has no valid key.' };
  expect(await verdict()).toMatchObject(refused);
  const { body } = await admin.call('POST', '/admin/v1/customers/by-plan/keys', {});
  expect(await verdict()).toMatchObject({ admitted: true, verdict: 'Its requests are admitted now.' });
  await admin.call('PATCH', '/admin/v1/customers/by-plan', { suspended: true });
  expect(await verdict()).toMatchObject({ admitted: false, verdict: expect.stringContaining('suspended') });
  await admin.call('PATCH', '/admin/v1/customers/by-plan', { suspended: false });
  await admin.call('DELETE', `/admin/v1/keys/${body.id}`);
  expect(await verdict()).toMatchObject(refused);
});

it('the state in memory is shown too, also while the store is unavailable', async () => {
  const storeless = await startAdmin({ usage: () => Promise.reject(new StoreUnavailableError('away')) });
  onTestFinished(() => storeless.close());
  await storeless.records.createCustomer({ id: 'acme', plan: 'starter', suspended: true });
  const { body } = await storeless.call('GET', '/admin/v1/customers/acme/explain');
  expect(body).toMatchObject({
    plan: 'starter',
    suspended: true,
    usage: null,
    instance: {
      leases: [{ units: 7, ends_in_seconds: 0.4 }],
      refuses_for_seconds: null,
      refusals: [
        {
          code: 'quota_exceeded',
          count: 3,
          first_at: '2026-03-01T11:59:00.000Z',
          last_at: '2026-03-01T12:00:00.000Z',
          key_id: 'k',
        },
      ],
    },
  });
});

it.each(['nobody', '-a', '%ff'])('%s is 404', async (id) => {
  expect((await admin.call('GET', `/admin/v1/customers/${id}/explain`)).status).toBe(404);
});
