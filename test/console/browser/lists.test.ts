/** Lists that are long: how many calls they take, what is found in them, and what going back restores. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditDocument } from '../../../src/api/admin/responses.ts';
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

const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

it('an audit with an import of 20,000 is read in some twenty calls', async () => {
  const IMPORTED = 20_000;
  const nowMs = Date.now();
  const entry = (index: number): AuditDocument => ({
    id: String(index),
    at: new Date(nowMs - index).toISOString(),
    actor: 'token',
    from: '127.0.0.1',
    action: index < IMPORTED ? 'customer.create' : 'usage.reset',
    customer: `customer-${index}`,
    customer_name: null,
    key_id: null,
    details: null,
    before: null,
  });
  const limits: number[] = [];
  await visit(browser, sample.origin, {}, async (page) => {
    await page.route('**/admin/v1/audit?*', (route) => {
      const { searchParams } = new URL(route.request().url());
      const [from, limit] = [Number(searchParams.get('cursor') ?? 0), Number(searchParams.get('limit'))];
      limits.push(limit);
      const to = Math.min(from + limit, IMPORTED + 14);
      const items = Array.from({ length: to - from }, (_, index) => entry(from + index));
      return route.fulfill({ json: { items, next_cursor: to === IMPORTED + 14 ? null : String(to) } });
    });
    await page.goto('/console/audit');
    await see(page, '15 in all');
    await see(page, '20,000 × Customer created');
    expect(limits.length).toBeLessThanOrEqual(22);
    expect(Math.max(...limits)).toBeLessThanOrEqual(1000);
  });
});

it('back from a customer, a filtered list has the rows that were shown, at the same scroll position', async () => {
  await visit(browser, sample.origin, { expectedStatuses: [404] }, async (page) => {
    await page.goto('/console/customers?search=customer', { waitUntil: 'networkidle' });
    const rows = page.getByRole('table').locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => rows.count()).toBe(100);
    const link = page.getByRole('link', { name: 'Customer 75', exact: true });
    await link.scrollIntoViewIfNeeded();
    const scrolled = await page.evaluate<number>('scrollY');
    expect(scrolled).toBeGreaterThan(500);
    await link.click();
    await see(page, 'Limit and usage');
    await page.goBack();
    await expect.poll(() => rows.count()).toBe(100);
    await expect.poll(() => page.evaluate('scrollY')).toBe(scrolled);
  });
});

it.each([
  ['a UUID', '0f1e9a3e-3c34-4a12-b2a4-6d3f1b7f8c55'],
  ['a ULID', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  ['an ObjectId', '507f1f77bcf86cd799439011'],
])('a customer whose id is %s is found, after its hash was found to be no key', async (_, id) => {
  await callAdmin(sample.gateway, '/admin/v1/customers', { body: { id, plan: 'starter' } });
  await visit(browser, sample.origin, { expectedStatuses: [404] }, async (page) => {
    const calls: string[] = [];
    page.on('request', (request) => calls.push(request.url().slice(sample.origin.length)));
    await page.goto('/console');
    await page.getByLabel(/^Find a/).fill(id);
    await page.keyboard.press('Enter');
    await see(page, 'Exact match:');
    const [first = '', second = ''] = ['sha256=', id].map((part) => calls.find((path) => path.includes(part)));
    expect(first).toMatch(/^\/admin\/v1\/keys\?/);
    expect(calls.indexOf(first)).toBeLessThan(calls.indexOf(second));
    expect(page.url()).toBe(`${sample.origin}/console/search`);
  });
});

it('a key in the form of an id is found by its hash, and nothing else of it is sent', async () => {
  const key = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
  const { status } = await callAdmin(sample.gateway, '/admin/v1/customers/acme/keys', { body: { value: key } });
  expect(status).toBe(201);
  await visit(browser, sample.origin, { expectedStatuses: [404] }, async (page) => {
    const calls: string[] = [];
    page.on('request', (request) => calls.push(`${request.url()} ${request.postData() ?? ''}`));
    await page.goto('/console');
    await page.getByLabel(/^Find a/).fill(key);
    await page.keyboard.press('Enter');
    await see(page, '1 in all');
    await page.getByRole('link', { name: 'Acme Logistics' }).waitFor();
    await page.waitForLoadState('networkidle');
    expect(calls.filter((call) => call.includes(key))).toEqual([]);
  });
});

it('a whole key in any text, of any form, leaves the page as its hash alone, also from the filters of lists', async () => {
  const { keys, gateway, origin } = sample;
  const value = 'weak-key';
  await callAdmin(gateway, '/admin/v1/customers/hooli/keys', { body: { value } });
  const [generated = '', gone] = [keys.get('hooli'), 'tg_0123456789012345678901234567890123456789012345678'];
  await visit(browser, origin, {}, async (page) => {
    const calls: string[] = [];
    page.on('request', (request) => calls.push(decodeURIComponent(`${request.url()} ${request.postData() ?? ''}`)));
    const find = async (text: string) => {
      await page.getByLabel(/^Find a/).fill(text);
      await page.keyboard.press('Enter');
    };
    await page.goto('/console');
    for (const text of [
      `Bearer ${generated}`,
      `hooli "${generated}"`,
      `X-Api-Key:${generated}`,
      value,
      `key=${value}`,
    ]) {
      await find(text);
      await page.getByRole('link', { name: 'Hooli' }).waitFor();
      await see(page, '1 in all');
      expect(page.url()).toBe(`${origin}/console/search`);
      await page.goto('/console');
    }
    await find(`the key ${gone} of Hooli`);
    await see(page, 'Nothing else was searched');
    for (const [path, field] of [
      ['/console/customers', 'Search by name or id'],
      ['/console/audit', 'Customer id'],
    ] as const) {
      await page.goto(path, { waitUntil: 'networkidle' });
      for (const text of [generated, value, `Bearer ${gone}`]) {
        await page.getByLabel(field).fill(text);
        await see(page, 'Not searched: it may be a whole key.');
        expect(page.url()).toBe(origin + path);
        await page.getByLabel(field).fill('');
      }
    }
    const leaked = calls.filter((call) =>
      [generated.slice(3, 16), gone.slice(3, 16), value].some((part) => call.includes(part)),
    );
    expect(leaked).toEqual([]);
    expect(calls.filter((call) => call.includes('sha256='))).not.toEqual([]);
  });
});

it('"/" leads to the search, which finds customers and keys by parts of what is known of them, those meant by name first', async () => {
  const { gateway, origin } = sample;
  for (const [id, name] of [
    ['a-kestrel', 'Other birds'],
    ['z-1', 'Kestrel Aviation'],
  ]) {
    await callAdmin(gateway, '/admin/v1/customers', { body: { id, name, plan: 'starter' } });
  }
  await callAdmin(gateway, '/admin/v1/customers/z-1/keys', { body: { name: 'Night flights' } });
  await visit(browser, origin, { expectedStatuses: [404] }, async (page) => {
    await page.goto('/console', { waitUntil: 'networkidle' });
    const find = async (text: string) => {
      await page.keyboard.press('/');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.locator('h1', { hasText: 'Search' }).waitFor();
      await page.locator('h1').focus();
    };
    const linksIn = (name: string) => page.getByRole('region', { name }).locator('a.name').allTextContents();
    await find('strel');
    await expect.poll(() => linksIn('Customers')).toEqual(['Kestrel Aviation', 'Other birds']);
    await find('birds KESTREL');
    await expect.poll(() => linksIn('Customers')).toEqual(['Other birds']);
    await find('flight aviat');
    await expect.poll(() => linksIn('Keys')).toEqual(['Kestrel Aviation']);
    // Where text is typed, the key is a letter.
    await page.goto('/console/customers', { waitUntil: 'networkidle' });
    await page.getByLabel('Search by name or id').pressSequentially('a/b');
    await expect.poll(() => page.getByLabel('Search by name or id').inputValue()).toBe('a/b');
  });
});
