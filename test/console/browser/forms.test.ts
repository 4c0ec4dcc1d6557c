/** Forms for what restricts keys, and for what lasts for a time: what is accepted is shown, what is refused is said at its field. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { callAdmin } from '../../support/admin.ts';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { startBrowser, visit } from './support/browser.ts';
import { type Sample, startSample } from './support/sample.ts';

let browser: Browser;
let sample: Sample;
beforeAll(async () => {
  sample = await startSample(EMBEDDED_STORE);
  browser = await startBrowser();
});
afterAll(async () => {
  await browser.close();
  await sample.close();
});

const open = (path: string, use: (page: Page) => Promise<void>) =>
  visit(browser, sample.origin, { expectedStatuses: [422] }, async (page) => {
    await page.goto(path, { waitUntil: 'networkidle' });
    await use(page);
  });
const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const submit = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
const field = (page: Page, label: string) => page.getByRole('dialog').getByLabel(label);
const api = async (path: string) => (await callAdmin(sample.gateway, path)).body;

/** Waits for the fault at the field, and expects no other one. */
async function expectFault(page: Page, label: string, fault: RegExp): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.locator('label', { hasText: label }).getByText(fault).waitFor();
  await expect.poll(() => dialog.getByRole('alert').count()).toBe(1);
  expect(await field(page, label).getAttribute('aria-invalid')).toBe('true');
}

/** A time as the field has it, in the zone of the page. */
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 16);

it('a key is created, and changed, with scopes and allowed addresses; each wrong one is said at its field', async () => {
  await open('/console/customers/stark', async (page) => {
    await click(page, 'New key');
    await field(page, 'Name').fill('Restricted');
    await field(page, 'Scopes').fill('messages:write "no"');
    await submit(page, 'Create and copy');
    await expectFault(page, 'Scopes', /^must be 1 to 128 visible ASCII characters/);
    await field(page, 'Scopes').fill('messages:write  billing');
    await field(page, 'Allowed addresses').fill('203.0.113.7, 10.0.0.0/33');
    await submit(page, 'Create and copy');
    await expectFault(page, 'Allowed addresses', /^must be an IP address or a CIDR block/);
    await field(page, 'Allowed addresses').fill('203.0.113.7, 2001:db8::/32');
    await see(
      page,
      'tollgate keys create stark --name Restricted --scope messages:write --scope billing --allowed-address 203.0.113.7 --allowed-address 2001:db8::/32',
    );
    await submit(page, 'Create and copy');
    await click(page, 'Done');
    const row = page.getByRole('row').filter({ hasText: 'Restricted' });
    await row.getByText('for messages:write billing from 203.0.113.7 2001:db8::/32').waitFor();

    await click(page, 'Change Restricted');
    await expect.poll(() => field(page, 'Scopes').inputValue()).toBe('messages:write billing');
    await field(page, 'Scopes').fill('');
    await field(page, 'Allowed addresses').fill('nowhere');
    await submit(page, 'Save');
    await expectFault(page, 'Allowed addresses', /^must be an IP address or a CIDR block/);
    await field(page, 'Allowed addresses').fill('198.51.100.0/24');
    await see(page, /--no-scope --allowed-address 198\.51\.100\.0\/24$/);
    await submit(page, 'Save');
    await row.getByText(/^from 198\.51\.100\.0\/24$/).waitFor();
    const { items } = await api('/admin/v1/customers/stark/keys');
    expect(items.find(({ name }: { name: string }) => name === 'Restricted')).toMatchObject({
      scopes: null,
      allowed_addresses: ['198.51.100.0/24'],
    });
  });
});

it('a customer has a limit for a time, which is shown with its end and ended; a wrong one is said at its field', async () => {
  await open('/console/customers/acme', async (page) => {
    await click(page, 'Limit for a time');
    await field(page, 'Requests per hour').fill('70');
    await submit(page, 'Save');
    await expectFault(page, 'Until', /missing/);
    await field(page, 'Until').fill(inDays(-2));
    await submit(page, 'Save');
    await expectFault(page, 'Until', /^must be in the future$/);
    await field(page, 'Until').fill(inDays(2));
    await see(page, /tollgate customers update acme --temporary-limit 70 --until \S+Z$/);
    await submit(page, 'Save');
    const panel = page.getByRole('region', { name: 'Limit and usage' });
    await panel.getByText('70 requests per hour').waitFor();
    await panel.getByText(/^until .*, then 20,000$/).waitFor();
    await panel.getByText('temporary').first().waitFor();
    expect((await api('/admin/v1/customers/acme')).temporary_limit).toMatchObject({ requests_per_hour: 70 });

    // The form begins with the limit. Only a new end prolongs it, and only a new number keeps the end.
    const present = async () => (await api('/admin/v1/customers/acme')).temporary_limit;
    const { until } = await present();
    await click(page, 'Limit for a time');
    await expect.poll(() => field(page, 'Requests per hour').inputValue()).toBe('70');
    await field(page, 'Requests per hour').fill('90');
    await see(page, /tollgate customers update acme --temporary-limit 90$/);
    await submit(page, 'Save');
    await panel.getByText('90 requests per hour').waitFor();
    expect(await present()).toEqual({ requests_per_hour: 90, until });
    await click(page, 'Limit for a time');
    await field(page, 'Until').fill(inDays(4));
    await see(page, /tollgate customers update acme --until \S+Z$/);
    await submit(page, 'Save');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await present()).toMatchObject({ requests_per_hour: 90 });
    expect(Date.parse((await present()).until) - Date.parse(until)).toBeGreaterThan(86_400_000);

    await click(page, 'Limit for a time');
    await field(page, 'Requests per hour').fill('');
    await submit(page, 'Save');
    await page.locator('dialog [name=temporary_limit]:invalid').waitFor();
    expect(await present()).toMatchObject({ requests_per_hour: 90 });
    await field(page, 'Requests per hour').fill('90');
    await field(page, 'Until').fill('');
    await submit(page, 'Save');
    await expectFault(page, 'Until', /missing/);
    await submit(page, 'End it now');
    await see(page, 'End the limit of acme now?');
    await see(page, 'tollgate customers update acme --no-temporary-limit');
    await submit(page, 'End it now');
    await panel.getByText('20,000 requests per hour').waitFor();
    expect((await api('/admin/v1/customers/acme')).temporary_limit).toBeNull();
  });
});

it('a customer is suspended for a time, and its page says until when; a time in the past is said at its field', async () => {
  await open('/console/customers/hooli', async (page) => {
    await page.getByLabel('More actions').click();
    await click(page, 'Suspend');
    await field(page, 'Until').fill(inDays(-2));
    await submit(page, 'Suspend');
    await expectFault(page, 'Until', /^must be in the future$/);
    // In the zone of the page, Europe/Berlin.
    await submit(page, 'until Friday 18:00');
    const friday = new Date(`${await field(page, 'Until').inputValue()}:00Z`);
    expect([friday.getUTCDay(), friday.getUTCHours(), friday.getUTCMinutes()]).toEqual([5, 18, 0]);
    expect(friday.getTime() - Date.now()).toBeLessThan(7.1 * 86_400_000);
    await submit(page, '7 days');
    const inAWeek = Date.parse(`${await field(page, 'Until').inputValue()}:00Z`) - Date.now();
    expect(inAWeek / 86_400_000).toBeCloseTo(7, 0);
    await field(page, 'Until').fill(inDays(2));
    await see(page, /tollgate customers update hooli --suspended --until \S+Z$/);
    await submit(page, 'Suspend');
    await expect.poll(() => page.locator('.toolbar').first().innerText()).toMatch(/suspended\s+until\s+\d/);
    await see(page, /refused now: the customer is suspended/);
    await click(page, 'Reactivate');
    await submit(page, 'Reactivate');
    await see(page, /Its requests are (?:admitted|refused) now/);
    expect(await api('/admin/v1/customers/hooli')).toMatchObject({ suspended: false, suspended_until: null });
  });
});
