/** The customers of the quick start, one for each plan, with keys that everyone knows. */
import type { AdminClient } from '../src/api/client/admin-client.ts';
import { AdminRefusal } from '../src/api/client/failures.ts';

export const DEMO_CUSTOMERS = [
  { id: 'demo-starter', name: 'Demo Starter', plan: 'starter', key: 'tg_demo_starter' },
  { id: 'demo-professional', name: 'Demo Professional', plan: 'professional', key: 'tg_demo_professional' },
  { id: 'demo-business', name: 'Demo Business', plan: 'business', key: 'tg_demo_business' },
  {
    id: 'demo-enterprise',
    name: 'Demo Enterprise',
    plan: 'enterprise',
    requests_per_hour: 50_000,
    key: 'tg_demo_enterprise',
  },
] as const;

/** Creates the customers and keys that do not exist yet. Changes no existing ones. */
export async function createDemoCustomers(admin: AdminClient): Promise<void> {
  for (const { key, ...customer } of DEMO_CUSTOMERS) {
    await unlessItExists(admin.call('POST /admin/v1/customers', { body: customer }));
    await unlessItExists(admin.call('POST /admin/v1/customers/:id/keys', { id: customer.id, body: { value: key } }));
  }
}

/** The customer whose portal the quick start opens. */
export const PORTAL_CUSTOMER = DEMO_CUSTOMERS[0];

/** Returns a link as an operator's own dashboard gets it for a signed-in user. `portal`: with the port that was taken. */
export async function createPortalLink(admin: AdminClient, portal: string): Promise<string> {
  const { url } = await admin.call('POST /admin/v1/customers/:id/portal-sessions', {
    id: PORTAL_CUSTOMER.id,
    body: { scopes: ['usage:read', 'keys:read', 'keys:write'], user: 'quick start' },
  });
  const { pathname, hash } = new URL(url);
  return portal + pathname + hash;
}

async function unlessItExists(creation: Promise<unknown>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    if (!(error instanceof AdminRefusal && error.problem.code === 'conflict')) throw error;
  }
}
