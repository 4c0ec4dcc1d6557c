/** Days and months on the pages of the console and the portal. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../../bench/free-port.ts';
import { createLink } from '../../portal/support.ts';
import { callAdmin, createCustomerWithKey } from '../../support/admin.ts';
import { startShared } from '../../support/cleanup.ts';
import { earlyInHour } from '../../support/early-in-hour.ts';
import { startSystem } from '../../support/system.ts';
import {
  accessibilityFaults,
  expectNoSidewaysScroll,
  type Look,
  startBrowser,
  takeScreenshot,
  visit,
} from './support/browser.ts';
import { sendRequests } from './support/sample.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

const PLANS = {
  starter: { requests_per_hour: 1000, period: { per: 'month', requests: 12 } },
  metered: { requests_per_hour: 1000, period: { per: 'day', requests: 10, beyond: 'allow' } },
};

const started = startShared(async () => {
  await earlyInHour(60_000);
  const port = await freePort();
  const portal = { host: '127.0.0.1', port, public_url: `http://127.0.0.1:${port}`, title: 'Conversations API' };
  const system = await startSystem({ config: { plans: PLANS, portal } });
  await sendRequests(system.gateway, system.key, 12);
  await sendRequests(
    system.gateway,
    await createCustomerWithKey(system.gateway, { id: 'metered', plan: 'metered' }),
    13,
  );
  return system;
});

async function inspect(page: Page, name: string, look: Look): Promise<void> {
  await takeScreenshot(page, `periods-${name}`, look);
  await expectNoSidewaysScroll(page);
  expect(await accessibilityFaults(page)).toEqual([]);
}

const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

it.each(['light', 'phone'] as const)('the console shows each period with its gauge: %s', async (look) => {
  const { gateway } = started();
  await visit(browser, gateway.admin ?? '', { look }, async (page) => {
    await page.goto('/console/customers/acme', { waitUntil: 'networkidle' });
    const panel = page.getByRole('region', { name: 'Limit and usage' });
    await panel.getByText('12 requests per month').waitFor();
    await panel.getByText('12 of 12').waitFor();
    await panel.getByText('Next month begins').waitFor();
    await see(page, /the limit of this month is used up/);
    await inspect(page, 'customer', look);
    await page.goto('/console/customers/metered', { waitUntil: 'networkidle' });
    await panel.getByText('10 requests per day, more is overage').waitFor();
    await panel.getByText('13 of 10').waitFor();
    await panel.getByText('Overage', { exact: true }).waitFor();
    await page.goto('/console/customers', { waitUntil: 'networkidle' });
    await see(page, '12 of 12');
    await inspect(page, 'customers', look);
  });
});

it('the month alone is reset, as the form says', async () => {
  const { gateway } = started();
  await createCustomerWithKey(gateway, { id: 'reset', plan: 'starter' }).then((key) => sendRequests(gateway, key, 5));
  await visit(browser, gateway.admin ?? '', {}, async (page) => {
    await page.goto('/console/customers/reset', { waitUntil: 'networkidle' });
    await page.getByLabel('More actions').click();
    await page.getByRole('button', { name: 'Reset usage' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Usage of').selectOption('This month');
    await see(page, 'tollgate usage reset reset --window period');
    await dialog.getByRole('button', { name: 'Reset usage' }).click();
    await see(page, 'Reset the usage of reset.');
    const usage = async () => (await callAdmin(gateway, '/admin/v1/customers/reset/usage')).body;
    await expect.poll(usage).toMatchObject({ used: 5, period: { used: 0, remaining: 12 } });
  });
});

it.each(['light', 'phone'] as const)(
  'the portal says how much of the period is left, and until when: %s',
  async (look) => {
    const { gateway } = started();
    const open = (customer: string, use: (page: Page) => Promise<void>) =>
      visit(browser, gateway.portal ?? '', { look, token: false }, async (page) => {
        const { href } = await createLink(gateway, customer, { scopes: ['usage:read'] });
        await page.goto(href, { waitUntil: 'networkidle' });
        await use(page);
      });
    await open('acme', async (page) => {
      await see(page, '0 of 12 requests left in this month');
      await see(page, /The limit of this month is used up: requests are refused with 429 until/);
      await see(page, 'The next month begins');
      await inspect(page, 'portal', look);
    });
    await open('metered', async (page) => {
      await see(page, '3 requests beyond the limit of this day: served, and counted as overage.');
      await see(page, '13 of 10');
      await inspect(page, 'portal-overage', look);
    });
  },
);
