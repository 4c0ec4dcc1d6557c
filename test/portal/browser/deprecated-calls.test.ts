/** A customer sees which of its calls will end, and when. */
import { expect, it, onTestFinished } from 'vitest';
import {
  accessibilityFaults,
  expectNoSidewaysScroll,
  startBrowser,
  takeScreenshot,
  visit,
} from '../../console/browser/support/browser.ts';
import { bearer, createCustomerWithKey } from '../../support/admin.ts';
import { startBackend } from '../../support/backend.ts';
import { ADMIN_TOKEN, EMBEDDED_STORE } from '../../support/gateway.ts';
import { createLink, startPortalGateway } from '../support.ts';

const ROUTES = [
  {
    path: '/api/v1/conversations/{id}/messages/{message_id}',
    methods: ['GET'],
    sunset_at: '2126-07-01T00:00:00Z',
    successor: 'https://docs.example.com/conversations/migrating-from-version-1-to-version-2',
  },
  { path: '/gone', methods: ['GET'], deprecated_at: '2025-01-01T00:00:00Z', sunset_at: '2025-06-01T00:00:00Z' },
];

it('the usage page lists the deprecated paths that were called, at each width', async () => {
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const gateway = await startPortalGateway(store.url, backend.url, { routes: ROUTES as never, aliases: {} });
  onTestFinished(() => gateway.close());
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  for (const path of ['/api/v1/conversations/1/messages/2', '/gone', '/gone']) {
    await fetch(gateway.public + path, { headers: bearer(key) });
  }
  const list = async () => {
    const { admin } = gateway;
    const response = await fetch(`${admin}/admin/v1/routes/deprecated/customers`, { headers: bearer(ADMIN_TOKEN) });
    return ((await response.json()) as { items: unknown[] }).items;
  };
  await expect.poll(async () => (await list()).length, { timeout: 40_000, interval: 200 }).toBe(2);
  for (const look of ['light', 'dark', 'tablet', 'phone'] as const) {
    const { pathname, hash } = await createLink(gateway, 'acme');
    await visit(browser, gateway.portal, { look, token: false, expectedStatuses: [401] }, async (page) => {
      await page.goto(pathname + hash, { waitUntil: 'networkidle' });
      const panel = page.getByRole('region', { name: 'Deprecated paths that you call' });
      await panel.getByText('/gone').waitFor();
      await panel.getByRole('link', { name: /^https:\/\/docs\.example\.com/ }).waitFor();
      await expectNoSidewaysScroll(page);
      expect(await accessibilityFaults(page)).toEqual([]);
      await takeScreenshot(page, 'portal-deprecated', look);
    });
  }
});
