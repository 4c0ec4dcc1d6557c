/** The portal shows the header in which this gateway takes keys: the first of `auth.key_headers`. */
import { expect, it, onTestFinished } from 'vitest';
import { startBrowser, visit } from '../../console/browser/support/browser.ts';
import { createCustomerWithKey } from '../../support/admin.ts';
import { startBackend } from '../../support/backend.ts';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { createLink, startPortalGateway } from '../support.ts';

it('the page and the dialog of a new key name it, and a key that is sent so works', async () => {
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const auth = { key_headers: ['X-API-Key', 'Authorization'] };
  const gateway = await startPortalGateway(store.url, backend.url, { auth });
  onTestFinished(() => gateway.close());
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const { pathname, hash } = await createLink(gateway, 'acme');
  await visit(browser, gateway.portal, { token: false, expectedStatuses: [401] }, async (page) => {
    await page.goto(pathname + hash, { waitUntil: 'networkidle' });
    await page.getByRole('link', { name: 'API keys', exact: true }).click();
    await page.getByText('Send a key as X-API-Key: … from your servers only.').waitFor();
    await page.getByRole('button', { name: 'New key', exact: true }).click();
    await page.getByRole('button', { name: 'Create and copy', exact: true }).click();
    await page.getByText('Send it as X-API-Key: …').waitFor();
    const key = await page.getByLabel('API key', { exact: true }).inputValue();
    const response = await fetch(`${gateway.public}/v1/conversations`, { headers: { 'X-API-Key': key } });
    expect(response.status).toBe(200);
  });
});
