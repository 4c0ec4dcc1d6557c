/** What the pages show where, beyond what the walk through them needs. */
import { readFile } from 'node:fs/promises';
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
  visit(browser, sample.origin, { expectedStatuses: [404] }, async (page) => {
    await page.goto(path, { waitUntil: 'networkidle' });
    await use(page);
  });
const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

it('nothing of the page is painted over the menu', async () => {
  await open('/console/customers', async (page) => {
    const x = (await page.locator('td .usage').nth(20).boundingBox())?.x ?? 0;
    const height = (await page.locator('.top').boundingBox())?.height ?? 0;
    expect(height).toBeGreaterThan(30);
    for (let y = 500; y < 530; y += 6) {
      await page.evaluate(`scrollTo(0, ${y})`);
      const covered = `[...Array(${Math.floor(height)}).keys()]
        .filter((y) => !document.elementFromPoint(${x + 20}, y).closest('.top'))`;
      expect(await page.evaluate(covered)).toEqual([]);
    }
  });
});

it('at 1280 pixels the menu is one line, with the name of an installation and of an actor, long ones too', async () => {
  const ACTORS = ['token:maria.schmidt', 'jwt:5d0f6f2e-6a4e-4d5c-9a59-3d6f0f0f9d53'];
  for (const [name, actor] of [
    ['production', ACTORS[0]],
    ['production, eu-central-1, cluster 12', ACTORS[1]],
  ]) {
    await visit(browser, sample.origin, {}, async (page) => {
      const installation = { name, color: 'red' };
      const session = {
        actor,
        scope: 'read',
        via: 'cookie',
        expires_at: null,
        key_header: 'Authorization',
        installation,
      };
      await page.route('**/console/session', (route) => route.fulfill({ json: session }));
      await page.goto('/console', { waitUntil: 'networkidle' });
      await see(page, actor ?? '');
      expect((await page.locator('.top').boundingBox())?.height).toBeLessThan(60);
      const boxes = await Promise.all(
        [page.getByRole('navigation'), page.getByRole('searchbox').first(), page.getByText(actor ?? '')].map((part) =>
          part.boundingBox(),
        ),
      );
      for (const [index, box] of boxes.entries()) {
        expect(box?.width).toBeGreaterThan(60);
        if (index > 0) expect(box?.x).toBeGreaterThan((boxes[index - 1]?.x ?? 0) + (boxes[index - 1]?.width ?? 0));
      }
    });
  }
});

it('names of usual length are whole where there is room', async () => {
  const name = 'Billing, production and reporting';
  await callAdmin(sample.gateway, '/admin/v1/customers/stark/keys', { body: { name } });
  const isCut = (page: Page, text: string) =>
    page
      .getByText(text)
      .first()
      .evaluate((element) => {
        const { scrollWidth, clientWidth } = element as unknown as { scrollWidth: number; clientWidth: number };
        return scrollWidth > clientWidth;
      });
  await open('/console/customers', async (page) => {
    expect(await isCut(page, 'Acme Logistics GmbH & Co. KG')).toBe(false);
    await page.goto('/console/customers/stark', { waitUntil: 'networkidle' });
    expect(await isCut(page, name)).toBe(false);
  });
});

it('the legend of a chart has numbers only, and a limit far above the bars is named', async () => {
  await open('/console/customers/initech', async (page) => {
    const legend = page.locator('.u-legend');
    await expect.poll(() => legend.innerText()).toContain('Limit per hour');
    expect(await legend.innerText()).not.toMatch(/Time|all/);
    await page.goto('/console/customers/stark', { waitUntil: 'networkidle' });
    await see(page, '↑ Limit: 5,000 per hour');
  });
});

it('the verdict has minutes, and the time of the reader', async () => {
  const until = '2100-01-31T12:00:00.000Z';
  const body = { suspended: true, suspended_until: until };
  await callAdmin(sample.gateway, '/admin/v1/customers/hooli', { method: 'PATCH', body });
  await open('/console/customers/hooli', async (page) => {
    await see(page, 'Its requests are refused now: the customer is suspended until 31 Jan 2100, 13:00.');
    await page.goto('/console/customers/initech', { waitUntil: 'networkidle' });
    await see(page, /the hourly limit is used up; more in \d\d min\.$/);
  });
});

it('the requests of 24 hours are the first panel, and the command line of a panel is behind its button', async () => {
  await open('/console', async (page) => {
    await page.getByRole('region', { name: 'Near the limit' }).waitFor();
    const titles = () => page.locator('main section h2').allTextContents();
    await expect
      .poll(titles)
      .toEqual(['Last 24 hours', 'Near the limit', 'Refused in the last hour', 'This installation']);
    const command = page.getByText('tollgate usage near');
    expect(await command.isVisible()).toBe(false);
    const button = page.getByRole('region', { name: 'Near the limit' }).getByLabel('Command line', { exact: true });
    await button.click();
    await command.waitFor();
    await page.keyboard.press('Escape');
    await command.waitFor({ state: 'hidden' });
  });
});

it("the customer's page lists its last refused and failed requests, by reason, and each leads to its cause", async () => {
  const listed = async () => (await callAdmin(sample.gateway, '/admin/v1/requests?customer=initech')).body.items;
  await expect.poll(async () => (await listed()).length, { timeout: 30_000 }).toBeGreaterThan(0);
  await open('/console/customers/initech', async (page) => {
    const panel = page.getByRole('region', { name: 'Last refused and failed requests' });
    const rows = panel.locator('tbody tr');
    await expect.poll(async () => (await rows.count()) - (await listed()).length).toBe(0);
    await panel.getByLabel('Reason').selectOption('invalid_key');
    await panel.getByText('None in the last 24 hours.').waitFor();
    await panel.getByLabel('Reason').selectOption('quota_exceeded');
    await rows.first().getByText('quota_exceeded').waitFor();
    const link = rows.first().getByRole('link').last();
    const id = (await link.getAttribute('title')) ?? '';
    await link.click();
    const found = page.getByRole('region', { name: 'Requests' });
    await found.getByText('Wait, raise the limit, or reset the usage.').waitFor();
    expect(new URL(page.url()).searchParams.get('text')).toBe(id);
    await found.getByRole('link', { name: 'initech' }).click();
    await page.getByRole('heading', { level: 1, name: 'Initech' }).waitFor();
  });
});

it('logins to the console are in the audit only when they are asked for', async () => {
  await open('/console/audit', async (page) => {
    const login = page.getByRole('cell', { name: 'Console login' });
    await page.getByRole('cell', { name: 'Customer created' }).first().waitFor();
    expect(await login.count()).toBe(0);
    await page.getByLabel('Console logins').check();
    await login.first().waitFor();
    expect(page.url()).toContain('logins=shown');
    await page.getByLabel('Console logins').uncheck();
    await login.first().waitFor({ state: 'detached' });
    await page.getByLabel('Action').selectOption('session.create');
    await login.first().waitFor();
  });
});

it('a list is saved as CSV, with the rows that it shows, in which no text is a formula', async () => {
  const name = '=HYPERLINK("http://evil.example")';
  await callAdmin(sample.gateway, '/admin/v1/customers/umbrella', { method: 'PATCH', body: { name } });
  await open('/console/customers?plan=starter&sort=Customer', async (page) => {
    await see(page, 'Initech');
    const downloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Customers as CSV' }).click();
    const file = await downloaded;
    expect(file.suggestedFilename()).toBe('Customers.csv');
    const [header = '', ...lines] = (await readFile(await file.path(), 'utf8'))
      .replace('\uFEFF', '')
      .trim()
      .split('\r\n');
    expect(header).toMatch(/^customer,customer_name,plan,/);
    expect(lines.filter((line) => line.startsWith('umbrella,'))).toEqual([
      expect.stringMatching(/^umbrella,"'=HYPERLINK\(""http:\/\/evil\.example""\)",starter,/),
    ]);
    expect(lines.length).toBe(await page.getByRole('table').locator('tbody tr').count());
  });
  await callAdmin(sample.gateway, '/admin/v1/customers/umbrella', { method: 'PATCH', body: { name: 'Umbrella' } });
});

interface Point {
  readonly plans: Readonly<Record<string, { readonly refused: number }>>;
}

it('refusals before the key was checked are counted apart from those without a valid key', async () => {
  const { public: origin } = sample.gateway;
  expect((await fetch(`${origin}/nowhere`)).status).toBe(404);
  for (let i = 0; i < 2; i++) expect((await fetch(`${origin}/v1/conversations`)).status).toBe(401);
  // Gateways write their counts every 10 seconds.
  const counted = async () => {
    const { points } = (await callAdmin(sample.gateway, '/admin/v1/usage/history')).body;
    const sum = (plan: string) =>
      points.reduce((total: number, { plans }: Point) => total + (plans[plan]?.refused ?? 0), 0);
    return { none: sum('none'), unchecked: sum('unchecked') };
  };
  await expect.poll(counted, { timeout: 30_000 }).toEqual({ none: 2, unchecked: 1 });
  await open('/console', async (page) => {
    const row = (name: string) => page.getByRole('row', { name }).innerText();
    expect(await row('without a valid key')).toMatch(/\b2\b/);
    expect(await row('before the key was checked')).toMatch(/\b1\b/);
  });
});
