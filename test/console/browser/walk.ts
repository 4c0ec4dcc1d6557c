/** Every page and action of the console, as an operator uses them, in a real browser over each store. */
import { writeFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { callAdmin } from '../../support/admin.ts';
import { earlyInHour } from '../../support/early-in-hour.ts';
import { ADMIN_TOKEN, REDIS_STORE, type StoreKind } from '../../support/gateway.ts';
import {
  accessibilityFaults,
  expectNoSidewaysScroll,
  LOOK_NAMES,
  type Look,
  logIn,
  OFFLINE,
  setLook,
  startBrowser,
  takeScreenshot,
  type VisitOptions,
  visit,
} from './support/browser.ts';
import { type Sample, sendRequests, startSample } from './support/sample.ts';

const ACME = 'Acme Logistics GmbH & Co. KG';

const PAGES = {
  login: '/console',
  overview: '/console',
  customers: '/console/customers',
  customer: '/console/customers/initech',
  keys: '/console/keys',
  search: '/console/search?text=acme',
  notices: '/console/notices',
  limits: '/console/limits',
  audit: '/console/audit',
  configuration: '/console/configuration',
};

export function walk(store: StoreKind): void {
  let browser: Browser;
  let sample: Sample;
  beforeAll(async () => {
    sample = await startSample(store);
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await sample.close();
  });

  const open = (path: string, use: (page: Page) => Promise<void>, options: VisitOptions = {}) =>
    visit(browser, sample.origin, options, async (page) => {
      await page.goto(path, { waitUntil: 'networkidle' });
      await use(page);
    });
  const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
  const clickInMenu = async (page: Page, name: string) => {
    await page.getByLabel('More actions').click();
    await click(page, name);
  };
  const api = async (path: string) => (await callAdmin(sample.gateway, path)).body;
  const find = async (page: Page, text: string) => {
    await page.getByLabel(/^Find a/).fill(text);
    await page.keyboard.press('Enter');
  };
  const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

  // The looks do not depend on the store.
  const looks = store === REDIS_STORE ? LOOK_NAMES : (['light'] as const);
  it.each(Object.entries(PAGES))('%s is accessible and fits the window in every look', async (name, path) => {
    const use = async (page: Page) => {
      await page.getByRole('heading', { level: 1 }).waitFor();
      // Gateways note every 10 seconds which customers are near their limits.
      if (name === 'overview') await page.getByRole('link', { name: 'Globex' }).waitFor();
      for (const look of looks) {
        await setLook(page, look);
        await inspect(page, name, look);
      }
    };
    await open(path, use, { token: name === 'login' ? false : ADMIN_TOKEN });
  });

  async function inspect(page: Page, name: string, look: Look): Promise<void> {
    await takeScreenshot(page, store === REDIS_STORE ? name : `${name}-embedded`, look);
    await expectNoSidewaysScroll(page);
    expect(await accessibilityFaults(page)).toEqual([]);
  }

  it('after the login, the focus is on the heading, and the first page shows who is near the limit, and one click why a customer is refused', async () => {
    await open(
      '/console',
      async (page) => {
        await page.getByLabel('Admin token').fill('wrong');
        await click(page, 'Log in');
        await page.getByRole('alert').waitFor();
        await page.getByLabel('Admin token').fill(ADMIN_TOKEN);
        await click(page, 'Log in');
        await page.getByRole('region', { name: 'Near the limit' }).getByRole('link', { name: 'Globex' }).waitFor();
        await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Overview');
        await page.getByRole('region', { name: 'Refused' }).getByRole('link', { name: 'initech' }).click();
        await see(page, /refused now: the hourly limit is used up/);
        await page.getByRole('region', { name: 'Limit and usage' }).getByLabel('Command line', { exact: true }).click();
        await see(page, /tollgate explain initech/);
      },
      { token: false },
    );
  });

  it('a new key is in the clipboard after three clicks, works, and is kept nowhere', async () => {
    await open('/console', async (page) => {
      await page.getByRole('link', { name: 'Keys' }).click();
      await click(page, 'New key');
      await page.getByLabel('Customer id').fill('acme');
      await click(page, 'Create and copy');
      await see(page, 'The key is in your clipboard.');
      const key = await page.evaluate<string>('navigator.clipboard.readText()');
      expect(key).toMatch(/^tg_[0-9A-Za-z]{49}$/);
      await expect.poll(() => page.getByLabel('API key', { exact: true }).inputValue()).toBe(key);
      await click(page, 'Done');
      const kept =
        'document.documentElement.outerHTML + location.href + JSON.stringify([localStorage, sessionStorage])';
      expect(await page.evaluate(kept)).not.toContain(key);
      const response = await fetch(`${sample.gateway.public}/v1/conversations`, {
        headers: { authorization: `Bearer ${key}` },
      });
      expect(response.status).toBe(200);

      // The owner of a key is found by the whole key, of which neither the address nor any request has anything.
      const sent: string[] = [];
      page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`));
      await find(page, key);
      await see(page, '1 in all');
      await page.getByRole('link', { name: ACME }).waitFor();
      expect(page.url()).toBe(`${sample.origin}/console/search`);
      expect(sent.filter((request) => request.includes(key.slice(0, 13)))).toEqual([]);
      expect(await page.evaluate(kept)).not.toContain(key);
      await expect.poll(() => page.getByLabel(/^Find a/).inputValue()).toBe('');
    });
  });

  it('one search finds customers, keys and notices by any identifier, and says what was searched for in vain', async () => {
    const [{ id, prefix }] = (await api('/admin/v1/customers/acme/keys')).items;
    const use = async (page: Page) => {
      for (const text of [id, prefix, 'logis']) {
        await find(page, text);
        await page.getByRole('link', { name: ACME }).first().waitFor();
        await expect.poll(() => new URL(page.url()).searchParams.get('text')).toBe(text);
      }
      for (const [text, answer] of [
        ['nobody', 'No customer matches “nobody”. Search for a part of it.'],
        ['nobody', 'No key matches.'],
        ['key_none', 'No key matches.'],
        ['msg_none', 'No undelivered notice has the id msg_none.'],
        ['nobody has this long name', 'No customer matches'],
      ] as const) {
        await find(page, text);
        await see(page, answer);
        await expect.poll(() => page.getByLabel(/^Find a/).inputValue()).toBe(text);
      }
      // It may be a key that another system made: it is neither in the address nor sent until the user says otherwise.
      const unknown = 'q7Xw2mT9LkZr4Vb8';
      await find(page, unknown);
      await see(page, 'No key of which only the hash was sent: q7Xw2mT9LkZr….');
      expect(page.url()).toBe(`${sample.origin}/console/search`);
      await click(page, 'It is no key: search for it as an id');
      await see(page, `No customer matches “${unknown}”.`);
      const requestId = '0f1e9a3e-3c34-4a12-b2a4-6d3f1b7f8c55';
      await find(page, requestId);
      await see(page, 'No refused or failed request has this id.');
      await see(page, `No customer matches “${requestId}”.`);
      expect(page.url()).toBe(`${sample.origin}/console/search`);
      // A request that was refused leads to its cause, and its customer's page has it too.
      const refused = async () => (await api('/admin/v1/requests?customer=umbrella')).items;
      await expect.poll(async () => (await refused()).length).toBeGreaterThan(0);
      const [{ request_id }] = await refused();
      await find(page, request_id);
      const found = page.getByRole('region', { name: 'Requests' });
      await found.getByText('customer_suspended').waitFor();
      await page.goBack();
      // The text is in the history, and a key in the audit leads to its owner.
      await page.goBack();
      await page.goBack();
      await see(page, 'No customer matches “nobody has this long name”.');
      await page.goto('/console/audit?customer=acme');
      await page.getByLabel('Action').selectOption('key.create');
      await page.getByTitle(id, { exact: true }).click();
      await page.getByRole('link', { name: ACME }).waitFor();
    };
    await open('/console', use, { expectedStatuses: [404] });
  });

  it('long ids are shortened in the middle, names are beside them, rows are of one height, and eight come first', async () => {
    const refused = Array.from({ length: 17 }, (_, i) => ({
      customer: i === 0 ? 'org-2f8a9b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e' : `customer-${i}`,
      customer_name: i === 1 ? null : 'Internationale Versicherungsgesellschaft für alle Fälle AG',
      code: 'quota_exceeded',
      count: 1,
      first_at: new Date().toISOString(),
      last_at: new Date().toISOString(),
      key_id: null,
    }));
    const near = refused.map(({ customer, customer_name }) => {
      return { customer, customer_name, plan: 'starter', limit: 100, used: 90, percent: 90, reset_seconds: 9 };
    });
    await visit(browser, sample.origin, {}, async (page) => {
      await page.route('**/usage/refused?*', (route) => route.fulfill({ json: refused }));
      await page.route('**/usage/near?*', (route) => route.fulfill({ json: near }));
      await page.goto('/console', { waitUntil: 'networkidle' });
      for (const name of ['Near the limit', 'Refused in the last hour']) {
        const panel = page.getByRole('region', { name });
        const rows = panel.locator('tbody tr');
        await expect.poll(() => rows.count()).toBe(8);
        await expect.poll(() => panel.locator('.customer').first().innerText()).toMatch(/AG\s+org-2f8a…b5c4d3e$/);
        expect(await panel.getByRole('link').nth(0).getAttribute('title')).toContain(refused[0]?.customer);
        await expect.poll(() => panel.getByRole('link').nth(1).innerText()).toBe('customer-1');
        await panel.getByRole('button', { name: 'All 17' }).click();
        await expect.poll(() => rows.count()).toBe(17);
        const heights = await rows.evaluateAll((all) =>
          all.map((row) => (row as unknown as { offsetHeight: number }).offsetHeight),
        );
        expect(Math.max(...heights) - Math.min(...heights)).toBeLessThanOrEqual(1);
      }
    });
  });

  it('while the gateway does not respond, one bar says since when, nothing is a verdict, and all is loaded again after', async () => {
    const use = async (page: Page) => {
      await see(page, 'All is well.');
      await page.context().setOffline(true);
      await page.getByRole('link', { name: 'Customers', exact: true }).click();
      await see(page, /^The gateway cannot be reached\. Everything here is as of \d\d:\d\d:\d\d; trying again\.$/);
      await page.getByRole('link', { name: 'Overview', exact: true }).click();
      await expect.poll(() => page.getByRole('alert').count()).toBe(1);
      await page.context().setOffline(false);
      await see(page, 'All is well.');
      await page.getByRole('alert').waitFor({ state: 'detached' });

      // A proxy responds, but not the gateway behind it. What was read stays, without its verdict.
      await page.route('**/{status,session,admin/v1/**}', (route) =>
        route.fulfill({ status: 502, body: 'Bad Gateway' }),
      );
      await page.getByRole('alert').waitFor();
      await expect.poll(() => page.getByRole('alert').count()).toBe(1);
      expect(await page.getByText('All is well.').isVisible()).toBe(false);
      await page.getByRole('link', { name: 'Globex' }).first().waitFor();
      await page.unrouteAll();
      await see(page, 'All is well.');
      await page.getByRole('alert').waitFor({ state: 'detached' });
    };
    await open('/console', use, { expectedStatuses: [502, OFFLINE] });
  });

  it('keys are rotated, changed and revoked, and a dialog that only confirms focuses Cancel', async () => {
    await open('/console/customers/stark', async (page) => {
      await click(page, 'Rotate Never used');
      await see(page, 'Has it leaked? Choose none.');
      await page.getByLabel('The old key works for').selectOption('3600');
      await see(page, /--grace-seconds 3600/);
      await click(page, 'Rotate and copy');
      await click(page, 'Done');
      await see(page, 'rotated');

      await click(page, 'Change Expires soon');
      await page.getByRole('dialog').getByLabel('Name').fill('Lasts');
      await page.locator('[name=expires_at]').fill('');
      await see(page, /--name Lasts --no-expires-at/);
      await click(page, 'Save');
      await click(page, 'Revoke Lasts');
      await see(page, /This cannot be undone/);
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Cancel');
      await click(page, 'Revoke key');
      await see(page, 'revoked');
      const { items } = await api('/admin/v1/customers/stark/keys');
      const lasts = items.find(({ name }: { name: string }) => name === 'Lasts');
      expect(lasts).toMatchObject({ expires_at: null, revoked_at: expect.any(String) });
    });
  });

  it('maintenance is begun, changed and ended on the overview, with the routes and words for clients', async () => {
    const use = async (page: Page) => {
      await click(page, 'Begin maintenance');
      const dialog = page.getByRole('dialog');
      await dialog.locator('[name=routes]').fill('/nothing');
      await dialog.getByRole('button', { name: 'Begin maintenance' }).click();
      await see(page, 'must be paths of routes in the configuration');
      await dialog.locator('[name=routes]').fill('/api/v1/conversations');
      await dialog.locator('[name=message]').fill('New disks.');
      await see(page, "tollgate maintenance down --route /api/v1/conversations --message 'New disks.'");
      await dialog.getByRole('button', { name: 'Begin maintenance' }).click();
      await see(page, /All requests to \/api\/v1\/conversations get 503/);
      await see(page, /Clients read: “New disks.”/);
      const refused = await fetch(`${sample.gateway.public}/v1/conversations`);
      expect([refused.status, await refused.json()]).toMatchObject([503, { detail: 'New disks.' }]);
      for (const look of ['narrow', 'dark', 'light'] as const) {
        await setLook(page, look);
        await inspect(page, 'maintenance', look);
      }

      await click(page, 'Change');
      await dialog.locator('[name=mode]').selectOption('read_only');
      await dialog.locator('[name=routes]').fill('');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await see(page, /Requests other than GET, HEAD and OPTIONS to every route get 503/);
      expect(await api('/admin/v1/maintenance')).toMatchObject({
        mode: 'read_only',
        routes: null,
        message: 'New disks.',
      });

      await click(page, 'End maintenance');
      await dialog.getByRole('button', { name: 'End maintenance' }).click();
      await page.getByRole('button', { name: 'Begin maintenance' }).waitFor();
      expect((await api('/admin/v1/maintenance')).mode).toBe('off');
    };
    await open('/console', use, { expectedStatuses: [422] });
  });

  it('a customer is created, changed, suspended, reactivated, reset and deleted', async () => {
    const use = async (page: Page) => {
      await click(page, 'New customer');
      await page.locator('[name=id]').fill('walk');
      await page.locator('dialog [name=name]').fill("Walk's");
      await page.locator('dialog [name=plan]').selectOption('starter');
      await see(page, "tollgate customers create walk --name 'Walk'\\''s' --plan starter");
      await click(page, 'Create');
      await page.getByRole('heading', { level: 1, name: "Walk's" }).waitFor();
      await click(page, 'Copy id');
      await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe('walk');
      // Without a valid key, that would be the reason of the refusal.
      const { key } = (await callAdmin(sample.gateway, '/admin/v1/customers/walk/keys', { body: {} })).body;

      await click(page, 'Change');
      await page.getByLabel('Requests per hour').fill('7');
      await see(page, 'tollgate customers update walk --requests-per-hour 7');
      await see(page, /1,000 → 7 per hour/);
      await click(page, 'Save');
      await see(page, '7 requests per hour');
      await see(page, 'customer record: requests_per_hour');

      await clickInMenu(page, 'Suspend');
      await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
      await see(page, /refused now: the customer is suspended/);
      await click(page, 'Reactivate');
      await page.getByRole('dialog').getByRole('button', { name: 'Reactivate' }).click();
      await see(page, 'Its requests are admitted now.');

      await sendRequests(sample.gateway, key, 7);
      await clickInMenu(page, 'Reset usage');
      await page.getByRole('dialog').getByRole('button', { name: 'Reset usage' }).click();
      await see(page, 'Reset the usage of walk.');
      expect((await api('/admin/v1/customers/walk/usage')).used).toBe(0);

      await clickInMenu(page, 'Delete');
      await page.getByLabel('Type walk to confirm').fill('walk');
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('heading', { level: 1, name: 'Customers' }).waitFor();
      expect((await callAdmin(sample.gateway, '/admin/v1/customers/walk')).status).toBe(404);
    };
    // A poll can ask for the customer while it is being deleted.
    await open('/console/customers', use, { expectedStatuses: [404] });
  });

  it('the portal opens as a customer in a tab of its own, which shows and cannot change, and the audit has it', async () => {
    const { portal = '' } = sample.gateway;
    const context = await browser.newContext();
    try {
      await logIn(context, { origin: sample.origin });
      const page = await context.newPage();
      await page.goto(`${sample.origin}/console/customers/globex`);
      await click(page, 'Open as this customer');
      await see(page, 'tollgate portal link globex --scope usage:read keys:read');
      const opened = context.waitForEvent('page');
      await click(page, 'Open in a new tab');
      const tab = await opened;
      await see(tab, /left in this hour/);
      expect(tab.url()).toBe(`${portal}/portal`);
      expect(await tab.evaluate('opener')).toBeNull();
      await tab.getByRole('link', { name: 'API keys' }).click();
      await see(tab, 'in all');
      expect(await tab.getByRole('button', { name: /New key|Rotate|Revoke/ }).count()).toBe(0);
      const [entry] = (await api('/admin/v1/audit?action=portal_session.create')).items;
      expect(entry).toMatchObject({ actor: 'token', customer: 'globex', details: { user: 'console' } });
    } finally {
      await context.close();
    }
  });

  it('the form of a customer whose plan is not configured shows that plan, and changes it only if another is chosen', async () => {
    await visit(browser, sample.origin, {}, async (page) => {
      await page.route('**/admin/v1/customers/acme', async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), plan: 'legacy', current_plan: null } });
      });
      await page.goto('/console/customers/acme', { waitUntil: 'networkidle' });
      await click(page, 'Change');
      const plan = page.locator('dialog [name=plan]');
      await expect.poll(() => plan.inputValue()).toBe('legacy');
      await page.locator('dialog [name=name]').fill('Acme');
      await page.getByText(/tollgate customers update acme --name Acme$/).waitFor();
      await plan.selectOption('starter');
      await page.getByText(/tollgate customers update acme --plan starter --name Acme$/).waitFor();
    });
  });

  it('customers are listed page by page, searched, counted, and sorted by name and usage; filters combine and are in the history', async () => {
    const names = (page: Page) => page.getByRole('table').locator('code.id').allTextContents();
    await open(
      '/console/customers',
      async (page) => {
        expect((await names(page)).length).toBeLessThan(100);
        const first = (await names(page)).length;
        await click(page, 'Count all');
        await see(page, /^\d+ of 126 shown, [\d,]+ requests in the last hour/);
        await click(page, 'Show more');
        expect((await names(page)).length).toBeGreaterThan(first);
        const search = page.getByLabel(/^Search/);
        await search.pressSequentially('logis', { delay: 100 });
        await expect.poll(() => names(page)).toEqual(['acme']);
        await see(page, /^1 in all, [\d,]+ requests in the last hour, as of \d\d:\d\d:\d\d Refresh/);
        await search.fill('');
        await expect.poll(() => new URL(page.url()).searchParams.has('search')).toBe(false);
        await page.getByLabel('Plan').selectOption('professional');
        // Gateways note every 10 seconds which customers are near their limits.
        const near = async () => (await callAdmin(sample.gateway, '/admin/v1/usage/near')).body.length;
        await expect.poll(near, { timeout: 20_000 }).toBeGreaterThan(0);
        await page.getByLabel('Usage').selectOption('80');
        await expect.poll(() => names(page)).toEqual(['globex']);
        expect(page.url()).toContain('?plan=professional&above=80');
        await page.reload();
        await expect.poll(() => names(page)).toEqual(['globex']);
        // One step for the typed text, however many letters it has.
        await page.goBack();
        await expect.poll(async () => (await names(page)).length).toBeGreaterThan(20);
        await expect.poll(() => page.getByLabel('Usage').inputValue()).toBe('');
        await expect.poll(() => page.getByLabel('Plan').inputValue()).toBe('professional');
        await page.goBack();
        await page.goBack();
        await expect.poll(() => names(page)).toEqual(['acme']);
        await expect.poll(() => search.inputValue()).toBe('logis');
        await page.goBack();
        await expect.poll(async () => (await names(page)).length).toBeGreaterThan(20);
        await expect.poll(() => search.inputValue()).toBe('');

        await page.getByLabel('State').selectOption('true');
        await expect.poll(() => names(page)).toEqual(['umbrella']);
        await page.getByLabel('State').selectOption('');
        await click(page, 'Customer');
        await expect
          .poll(async () => (await names(page)).slice(0, 3))
          .toEqual(['acme', 'customer-000', 'customer-001']);
        await click(page, 'Used');
        await expect.poll(async () => (await names(page)).slice(0, 3)).toEqual(['initech', 'globex', 'hooli']);
        expect(await page.getByRole('columnheader', { name: 'Used' }).getAttribute('aria-sort')).toBe('descending');
      },
      { expectedStatuses: [404] },
    );
  });

  it('back from a customer, the rows that were read and the scroll position are as before, and the menu and headers stay', async () => {
    await open('/console/customers', async (page) => {
      const rows = page.getByRole('table').locator('tbody tr');
      await click(page, 'Show more');
      await expect.poll(() => rows.count()).toBeGreaterThan(70);
      const link = page.getByRole('link').nth(75);
      await link.scrollIntoViewIfNeeded();
      const scrolled = await page.evaluate<number>('scrollY');
      expect(scrolled).toBeGreaterThan(500);
      for (const sticky of [page.getByRole('navigation'), page.getByRole('columnheader').first()]) {
        expect((await sticky.boundingBox())?.y).toBeLessThan(100);
      }
      const count = await rows.count();
      await link.click();
      await see(page, 'Limit and usage');
      await page.goBack();
      await expect.poll(() => page.evaluate('scrollY')).toBe(scrolled);
      await expect.poll(() => rows.count()).toBe(count);
    });
  });

  it('keys are filtered by expiry and use, and sorted by last use; a rotated key leads to its successor', async () => {
    const { keys, gateway } = sample;
    const soon = new Date(Date.now() + 86_400_000).toISOString();
    await callAdmin(gateway, '/admin/v1/customers/globex/keys', { body: { name: 'Ends tomorrow', expires_at: soon } });
    await open('/console/keys', async (page) => {
      await page.getByLabel('Expiry').selectOption('7');
      await page.getByLabel('Command line', { exact: true }).click();
      await see(page, 'tollgate keys expiring --days 7');
      await see(page, 'Ends tomorrow');
      await page.getByLabel('Use', { exact: true }).selectOption('90');
      await see(page, 'No key matches: choose other days.');
      expect(page.url()).toContain('?expiring=7&unused=90');
      await page.goto('/console/keys', { waitUntil: 'networkidle' });
      await click(page, 'Last used');
      await click(page, 'Last used');
      await expect.poll(() => page.url()).toContain('sort=-Last+used');
      const last = page.getByRole('table').locator('tbody tr').first();
      await expect.poll(() => last.innerText()).toContain('ago');
    });
    const [{ id, prefix }] = (await api('/admin/v1/customers/hooli/keys')).items;
    const rotated = await callAdmin(gateway, `/admin/v1/keys/${id}/rotate`, { body: { grace_seconds: 0 } });
    expect(keys.get('hooli')?.startsWith(prefix)).toBe(true);
    const use = async (page: Page) => {
      const rows = page.getByRole('table', { name: 'Keys' }).locator('tbody tr');
      // The oldest is first.
      await see(page, `rotated → ${rotated.body.prefix}…`);
      await expect.poll(() => rows.first().innerText()).toContain('rotated');
      await rows.first().getByRole('link').click();
      await see(page, '1 in all');
      expect(new URL(page.url()).searchParams.get('text')).toBe(rotated.body.id);
    };
    await open('/console/customers/hooli', use, { expectedStatuses: [404] });
  });

  it('scopes and addresses of a key are sent as lists, and are options of the command line, one each', async () => {
    const body = { name: 'Partner', scopes: ['messages:read'] };
    const key = await callAdmin(sample.gateway, '/admin/v1/customers/stark/keys', { body });
    const { id } = key.body;
    await open('/console/customers/stark', async (page) => {
      await click(page, 'Change Partner');
      await page.getByLabel('Scopes').fill('');
      await page.getByLabel('Allowed addresses').fill('10.0.0.0/8, 203.0.113.7');
      const options = '--no-scope --allowed-address 10.0.0.0/8 --allowed-address 203.0.113.7';
      await see(page, `tollgate keys update ${id} ${options}`);
      await click(page, 'Save');
      await see(page, 'Changed Partner.');
    });
    const changed = { scopes: null, allowed_addresses: ['10.0.0.0/8', '203.0.113.7'] };
    expect(await api(`/admin/v1/keys/${id}`)).toMatchObject(changed);
  });

  it('on a phone, the actions on a row are one menu, and lists can be sorted', async () => {
    await callAdmin(sample.gateway, '/admin/v1/customers/stark/keys', { body: { name: 'Small' } });
    const use = async (page: Page) => {
      await page.getByLabel('Actions on Small').click();
      await page.getByRole('button', { name: 'Change Small' }).click();
      await page.getByRole('dialog').getByLabel('Name').waitFor();
      await click(page, 'Cancel');
      await page.getByLabel('Sort by').selectOption('Expires');
      await expect.poll(() => page.url()).toContain('sort=Expires');
    };
    await open('/console/customers/stark', use, { look: 'narrow' });
  });

  it('the history shows 24 hours, 7 days and 35 days by its address, with the limit as a line, also as a table', async () => {
    await open('/console/customers/initech', async (page) => {
      for (const [range, points, limit] of [
        ['24 hours', 24, 'Limit per hour'],
        ['7 days', 168, 'Limit per hour'],
        ['35 days', 35, ''],
      ] as const) {
        await click(page, range);
        await expect.poll(() => page.locator('.u-legend').innerText()).toContain(limit);
        const table = page.getByRole('table', { name: `Requests of the last ${range}` });
        if (!(await table.isVisible())) await page.getByText('As a table').click();
        await table.waitFor();
        await expect.poll(() => table.getByRole('row').count()).toBe(points + 1);
      }
      await page.goBack();
      await page.getByRole('img', { name: 'Requests of the last 7 days' }).waitFor();
      expect(page.url()).toContain('?range=7d');
    });
  });

  it('a limit is tried out, by number, and by a preview that begins with the running file', async () => {
    await open(
      '/console/limits',
      async (page) => {
        const starter = page.getByRole('region', { name: 'starter' });
        await starter.getByText('0 customers').first().waitFor();
        await page.getByLabel('Exact limit to try for business').fill('5');
        await page.getByRole('region', { name: 'business' }).getByRole('link', { name: ACME }).waitFor();

        const file = page.getByRole('textbox', { name: 'Config file' });
        const running = await file.inputValue();
        const { admin } = sample.gateway.sections;
        expect(parse(running)).toMatchObject({ ...sample.gateway.sections, admin: { ...admin, token: '(secret)' } });
        await click(page, 'Preview');
        await see(page, 'The file equals the running configuration.');
        await file.fill('plans: { starter: { requests_per_hour: 0 } }');
        await click(page, 'Preview');
        await see(page, /requests_per_hour: must be an integer of at least 1/);
        await click(page, 'Running file');
        await expect.poll(() => file.inputValue()).toBe(running);
        await file.fill(`${running}\n${stringify({ plans: { ...PLANS, business: { requests_per_hour: 5 } } })}`);
        await click(page, 'Preview');
        await see(page, 'plans.business.requests_per_hour: 20000 → 5');
        const worst = page.getByRole('table', { name: 'Customers that the file affects most' });
        await worst.getByRole('link', { name: ACME }).waitFor();
        // Whose limit stays is folded.
        await expect.poll(() => worst.getByRole('link').allTextContents()).toEqual([ACME]);
        await see(page, /^of whom [1-9]\d* today$/);
        await page.getByText(/refused or near with the same limit as today/).click();
        await page
          .getByRole('table', { name: 'Customers whose limit stays' })
          .getByRole('link', { name: 'Initech' })
          .waitFor();
        if (store === REDIS_STORE) await takeScreenshot(page, 'preview', 'light');
      },
      { expectedStatuses: [422] },
    );
  });

  it('the configuration, its reload, and the errors of a refused file are shown', async () => {
    const { file, sections } = sample.gateway;
    await open(
      '/console/configuration',
      async (page) => {
        await see(page, /requests_per_hour: 1000/);
        await click(page, 'Reload');
        await page.getByRole('dialog').getByRole('button', { name: 'Reload' }).click();
        await see(page, 'The file has not changed');
        await click(page, 'Close');
        await writeFile(file, stringify({ ...sections, plans: { starter: { requests_per_hour: 0 } } }));
        await click(page, 'Reload');
        await page.getByRole('dialog').getByRole('button', { name: 'Reload' }).click();
        await page.getByRole('dialog').getByRole('alert').waitFor();
        await click(page, 'Cancel');
        await see(page, /gateway\.yaml:\d+/);
        await page.goto('/console');
        await see(page, 'The configuration file was refused');
        await writeFile(file, stringify(sections));
        await callAdmin(sample.gateway, '/admin/v1/config/reload', { method: 'POST' });
      },
      { expectedStatuses: [422] },
    );
  });

  it('while only the store does not respond, one bar says so, and what was read from it has no verdict', async () => {
    const use = async (page: Page) => {
      await see(page, /Its requests are admitted now|Its requests are refused now/);
      const problem = {
        title: 'Store unavailable',
        detail: 'The store did not reply.',
        status: 503,
        code: 'store_unavailable',
      };
      await page.route('**/admin/v1/**', (route) => route.fulfill({ status: 503, json: problem }));
      await see(page, /^The store does not respond\. What is read from it is as of \d\d:\d\d:\d\d; trying again\.$/);
      await page.getByRole('link', { name: 'Customers', exact: true }).first().click();
      await page.goBack();
      await expect.poll(() => page.getByRole('alert').count()).toBe(1);
      expect(
        await page
          .getByText(/Its requests are/)
          .filter({ visible: true })
          .count(),
      ).toBe(0);
      await page.unrouteAll();
      await see(page, /Its requests are admitted now|Its requests are refused now/);
      await page.getByRole('alert').waitFor({ state: 'detached' });
    };
    await open('/console/customers/globex', use, { expectedStatuses: [503] });
  });

  it('what is wrong with a field is said at the field', async () => {
    const use = async (page: Page) => {
      const dialog = page.getByRole('dialog');
      await click(page, 'New customer');
      await dialog.locator('[name=id]').fill('acme');
      await click(page, 'Create');
      await dialog.locator('label', { hasText: 'Id' }).getByText('exists already').waitFor();
      await dialog.locator('[name=id]').fill('.x');
      await dialog.locator('[name=notify_url]').fill('http://10.0.0.1/');
      await click(page, 'Create');
      await dialog.locator('label', { hasText: 'Id' }).getByText('must be 1 to 128 letters').waitFor();
      await dialog.locator('label', { hasText: 'URL for its notices' }).getByText('must be').waitFor();
      await expect.poll(() => dialog.locator('[aria-invalid=true]').count()).toBe(2);
      expect(await dialog.locator('.problem').count()).toBe(0);
      await click(page, 'Cancel');
      await page.goto('/console/keys');
      await click(page, 'New key');
      await dialog.locator('[name=customer]').fill('nobody');
      await click(page, 'Create and copy');
      await dialog
        .locator('label', { hasText: 'Customer id' })
        .getByText('There is no customer with this id.')
        .waitFor();
    };
    await open('/console/customers', use, { expectedStatuses: [404, 409, 422] });
  });

  it('notices that are not delivered are listed and sent again, and the endpoints are tried', async () => {
    const delivery = { endpoint: 'https://hooks.example/x', state: 'dead', attempts: 6, next_attempt_at: null };
    const notice = {
      id: 'msg_0123456789abcdef0123456789',
      type: 'quota.exceeded',
      customer: 'acme',
      customer_name: 'Acme Logistics',
      created_at: new Date().toISOString(),
      deliveries: [{ ...delivery, last_error: 'the response was 500' }],
    };
    const use = async (page: Page) => {
      await see(page, 'The configuration has no notices');
      await see(page, 'All notices are delivered.');
      await click(page, 'Send a test notice');
      await see(page, 'tollgate notices test');
      await click(page, 'Send');
      await see(page, 'nowhere to send a notice to');
      await click(page, 'Cancel');
      await page.route('**/admin/v1/notices?*', (route) =>
        route.fulfill({ json: { items: [notice], next_cursor: null } }),
      );
      const retried = page.waitForResponse(`**/admin/v1/notices/${notice.id}/retry`);
      await page.route('**/retry', (route) => route.fulfill({ json: notice }));
      await page.getByLabel('State').selectOption('dead');
      await see(page, '6 failed: the response was 500');
      await expect.poll(() => page.getByRole('row').last().innerText()).toContain('https://hooks.example/x 6 failed');
      await click(page, 'Send again');
      await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
      await retried;
      await page.unrouteAll();

      const url = 'https://hooks.example/acme';
      await page.goto('/console/customers/acme', { waitUntil: 'networkidle' });
      await click(page, 'Change');
      await page.getByLabel('URL for its notices').fill(url);
      await see(page, `tollgate customers update acme --notify-url ${url}`);
      await click(page, 'Save');
      await see(page, `notices to ${url}`);
      await clickInMenu(page, 'Test notice');
      await see(page, 'tollgate notices test --customer acme');
      await callAdmin(sample.gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { notify_url: null } });
    };
    await open('/console/notices', use, { expectedStatuses: [422] });
  });

  it('the header has the name of the installation in its colour', async () => {
    const { file, sections } = sample.gateway;
    const reload = () => callAdmin(sample.gateway, '/admin/v1/config/reload', { method: 'POST' });
    await writeFile(file, stringify({ ...sections, console: { name: 'production', color: 'red' } }));
    await reload();
    await open('/console', async (page) => {
      const name = page.getByText('production', { exact: true });
      await name.waitFor();
      const color = 'getComputedStyle(document.querySelector(".installation")).backgroundColor';
      expect(await page.evaluate(color)).toBe('rgb(179, 38, 30)');
      expect(await page.title()).toBe('Overview · production');
    });
    await writeFile(file, stringify(sections));
    await reload();
  });

  it('the audit has who, old and new values, and the dates that are asked for; an import is one entry; a change is undone', async () => {
    const create = { id: 'audited', plan: 'starter', requests_per_hour: 25 };
    await callAdmin(sample.gateway, '/admin/v1/customers', { body: create });
    for (let i = 0; i < 4; i++) {
      await callAdmin(sample.gateway, '/admin/v1/customers/audited/keys', { body: { value: `imported-key-${i}` } });
    }
    const use = async (page: Page) => {
      await page.getByLabel('Admin token').fill(ADMIN_TOKEN);
      await page.getByLabel('Your name').fill('anna');
      await click(page, 'Log in');
      await see(page, 'token:anna');
      await page.goto('/console/customers/audited', { waitUntil: 'networkidle' });
      await click(page, 'Change');
      await page.getByLabel('Requests per hour').fill('100');
      await page.locator('dialog [name=plan]').selectOption('business');
      await click(page, 'Save');
      const panel = page.getByRole('region', { name: 'Changes' });
      await panel.getByText('requests per hour: 25 → 100').waitFor();
      await panel.getByText('token:anna').waitFor();
      await panel.getByText('4 × Key imported').waitFor();

      // Somebody changes the limit once more: the dialog says so.
      await callAdmin(sample.gateway, '/admin/v1/customers/audited', {
        method: 'PATCH',
        body: { requests_per_hour: 300 },
      });
      await page.getByRole('link', { name: 'Audit' }).click();
      await page.getByLabel('Customer id').pressSequentially('audited', { delay: 150 });
      await expect.poll(() => page.url()).toContain('customer=audited');
      await click(page, 'Today');
      await page.getByLabel('Command line', { exact: true }).click();
      await see(page, /tollgate audit --customer audited --from \S+ --to \S+$/);
      await expect.poll(() => page.getByLabel('Customer id').inputValue()).toBe('audited');
      const row = page.getByRole('row').filter({ hasText: 'plan: starter → business' });
      await row.getByRole('button', { name: 'Undo' }).click();
      await see(page, 'tollgate customers update audited --plan starter --requests-per-hour 25');
      await page.getByRole('dialog').getByText('requests per hour: 300 → 25 changed again since').waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click();
      // The dialog has the same text.
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await see(page, 'requests per hour: 300 → 25');
      expect(await api('/admin/v1/customers/audited')).toMatchObject({ plan: 'starter', requests_per_hour: 25 });
      await click(page, 'Yesterday');
      await see(page, 'No entries: choose other dates or filters.');
    };
    await earlyInHour(30_000);
    await open('/console', use, { token: false });
  });

  describe('an undo of what ends by itself', () => {
    const path = '/admin/v1/customers/undone';
    const patch = (body: object) => callAdmin(sample.gateway, path, { method: 'PATCH', body });
    const limit = (until: string) => ({ requests_per_hour: 2000, until });
    const ends = (ms: number) => new Date(Date.now() + ms).toISOString();
    /** Has a limit and a suspension until then, each removed by a change of its own. */
    async function change(until: string): Promise<void> {
      await callAdmin(sample.gateway, path, { method: 'DELETE' });
      await callAdmin(sample.gateway, '/admin/v1/customers', { body: { id: 'undone', plan: 'starter' } });
      const bodies = [{ temporary_limit: limit(until) }, { temporary_limit: null }, { suspended_until: until }];
      for (const body of [...bodies, { suspended: false }]) expect(await patch(body)).toMatchObject({ status: 200 });
    }
    async function undo(page: Page, changed: RegExp, shown: string | RegExp): Promise<void> {
      await page.getByRole('row').filter({ hasText: changed }).first().getByRole('button', { name: 'Undo' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(shown).first().waitFor();
      await dialog.getByRole('button', { name: 'Undo' }).click();
      await dialog.waitFor({ state: 'detached' });
    }
    const LIMIT_REMOVED = /temporary limit: 2,000 until .+ → none/;
    const REACTIVATED = /suspended: yes → no/;

    it('sets it back with its end', async () => {
      const until = ends(3_600_000);
      await change(until);
      await open('/console/customers/undone', async (page) => {
        await undo(page, LIMIT_REMOVED, `tollgate customers update undone --temporary-limit 2000 --until ${until}`);
        await undo(page, REACTIVATED, `tollgate customers update undone --suspended --until ${until}`);
      });
      const back = { temporary_limit: limit(until), suspended: true, suspended_until: until };
      expect(await api(path)).toMatchObject(back);

      // Another end, and none: the end that was before comes back.
      for (const body of [{ suspended_until: ends(7_200_000) }, { suspended: true }]) {
        await patch({ suspended_until: until });
        await patch(body);
        await open('/console/customers/undone', async (page) => {
          await undo(page, /suspended: yes.*suspended until: .+ → /, '--suspended --until');
        });
        expect(await api(path)).toMatchObject(back);
      }
    });

    it('says that it has ended, and sets neither a limit nor a suspension without an end', async () => {
      await change(ends(10_000));
      const { items } = await api('/admin/v1/audit?customer=undone');
      const [{ before }] = items;
      await expect.poll(() => Date.now(), { timeout: 20_000 }).toBeGreaterThan(Date.parse(before.suspended_until));
      await open('/console/customers/undone', async (page) => {
        await undo(page, LIMIT_REMOVED, 'it has ended');
        await undo(page, REACTIVATED, 'it has ended');
      });
      expect(await api(path)).toMatchObject({ temporary_limit: null, suspended: false, suspended_until: null });
    });
  });

  it('a session that may only read sees no control that writes', async () => {
    await visit(browser, sample.origin, {}, async (page) => {
      await page.route('**/console/session', (route) =>
        route.fulfill({
          json: { actor: 'jwt:reader', scope: 'read', via: 'cookie', expires_at: null, installation: null },
        }),
      );
      for (const path of Object.values(PAGES)) {
        await page.goto(path, { waitUntil: 'networkidle' });
        await see(page, 'read only');
        const writes = /^(?:New|Send|Change|Undo|Suspend|Delete|Reset|Rotate|Revoke|Reload)\b/;
        expect(await page.getByRole('button', { name: writes }).count(), path).toBe(0);
      }
    });
  });

  it('when the session ends, the login page appears, and leads back to where the user was', async () => {
    await open(
      '/console/customers/globex',
      async (page) => {
        await page.context().clearCookies();
        await page.getByRole('link', { name: 'Keys' }).click();
        await see(page, 'The session has ended.');
        await page.getByLabel('Admin token').fill(ADMIN_TOKEN);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
        await click(page, 'Log out');
        await page.getByLabel('Admin token').waitFor();
      },
      { expectedStatuses: [401] },
    );
  });

  it('everything is reached by keyboard: a skip link, dialogs that close, and the focus where it was', async () => {
    await open('/console/keys', async (page) => {
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.keyboard.press('Tab');
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
      const button = page.getByRole('button', { name: 'New key' });
      await button.focus();
      await page.keyboard.press('Enter');
      const field = page.getByLabel('Customer id');
      await field.waitFor();
      await expect.poll(() => field.evaluate((element) => element.ownerDocument.activeElement === element)).toBe(true);
      await page.keyboard.press('Escape');
      await field.waitFor({ state: 'detached' });
      await expect.poll(() => button.evaluate((element) => element.ownerDocument.activeElement === element)).toBe(true);
    });
  });

  describe('is found within three clicks from the first page, with nothing but what the pages say:', () => {
    type ClickOn = (name: string) => Promise<void>;

    it.each<[string, (page: Page, clickOn: ClickOn) => Promise<void>]>([
      [
        'the owner of a key',
        async (page, clickOn) => {
          const [{ id }] = (await api('/admin/v1/customers/stark/keys')).items;
          await find(page, id);
          await clickOn('Stark Industries');
          await page.getByRole('heading', { level: 1, name: 'Stark Industries' }).waitFor();
        },
      ],
      [
        'the reason of a refusal',
        async (page, clickOn) => {
          await find(page, 'Umbrella');
          await clickOn('Umbrella');
          await see(page, /refused now: the customer is suspended/);
        },
      ],
      [
        'the change of a day',
        async (page, clickOn) => {
          const path = '/admin/v1/customers/wayne';
          await earlyInHour(30_000);
          await callAdmin(sample.gateway, '/admin/v1/customers', { body: { id: 'wayne', plan: 'starter' } });
          await callAdmin(sample.gateway, path, { method: 'PATCH', body: { plan: 'business' } });
          await clickOn('Audit');
          await clickOn('Today');
          await page.getByRole('row').filter({ hasText: 'wayne' }).getByText('plan: starter → business').waitFor();
        },
      ],
    ])('%s', async (_, steps) => {
      const use = async (page: Page) => {
        let clicks = 0;
        await steps(page, async (name) => {
          const link = page.getByRole('link', { name, exact: true });
          await link
            .or(page.getByRole('button', { name, exact: true }))
            .first()
            .click();
          clicks++;
        });
        expect(clicks).toBeLessThanOrEqual(3);
      };
      await open('/console', use, { expectedStatuses: [404] });
    });
  });
}

const PLANS = {
  starter: { requests_per_hour: 1000 },
  professional: { requests_per_hour: 5000 },
  business: { requests_per_hour: 20_000 },
  enterprise: { requests_per_hour: 'custom' },
};
