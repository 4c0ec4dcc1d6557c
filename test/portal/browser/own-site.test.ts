/** The portal as a part of the operator's site, in a real browser: its logo, ways back, scopes, and a line to try a key. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../../bench/free-port.ts';
import {
  accessibilityFaults,
  expectNoSidewaysScroll,
  type Look,
  startBrowser,
  takeScreenshot,
  visit,
} from '../../console/browser/support/browser.ts';
import { rewrite } from '../../control/reload/support.ts';
import { callAdmin } from '../../support/admin.ts';
import { startBackend } from '../../support/backend.ts';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { createLink, type PortalGateway, startPortalGateway } from '../support.ts';

const HOME = 'https://app.example.com/developers';
const TITLE = `<b>Bücher</b> & "API"`;
/** Draws a part by a style of its own, as drawing programs write it. */
const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><style>rect{fill:#0a7d5a}</style><rect width="32" height="32" rx="7"/><script>document.documentElement.id = 'attacked'</script></svg>`;
const ROUTES = [
  {
    path: '/api/v1/conversations',
    methods: ['GET'],
    scope: 'conversations:read',
    description: 'Read <all> conversations',
  },
  { path: '/api/v1/conversations/{id}/messages', methods: ['POST'], scope: 'messages:write' },
];

let gateway: PortalGateway;
let browser: Browser;
const opened: { close(): Promise<unknown> }[] = [];
beforeAll(async () => {
  const [store, backend, port, portalPort] = [
    await EMBEDDED_STORE.start(),
    await startBackend(),
    await freePort(),
    await freePort(),
  ];
  const portal = {
    port: portalPort,
    public_url: `http://127.0.0.1:${portalPort}`,
    title: TITLE,
    home_url: HOME,
    docs_url: 'https://docs.example.com',
    support_url: 'https://example.com/support',
    api_url: `http://127.0.0.1:${port}`,
    accent_color: '#0a7d5a',
  };
  gateway = await startPortalGateway(store.url, backend.url, {
    listen: { host: '127.0.0.1', port },
    routes: ROUTES as unknown as Record<string, unknown>,
    plans: { growth: { requests_per_hour: 1000, period: { per: 'month', requests: 50_000, beyond: 'allow' } } },
    portal,
  });
  await writeFile(join(dirname(gateway.file), 'logo.svg'), LOGO);
  await rewrite(gateway, { portal: { ...gateway.sections.portal, logo_file: 'logo.svg' } });
  await gateway.reload('signal');
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'acme', name: 'Acme', plan: 'growth' } });
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'umbrella', plan: 'growth', suspended: true } });
  browser = await startBrowser();
  opened.push(store, backend, gateway, browser);
});
afterAll(async () => {
  for (const each of opened.reverse()) await each.close();
});

const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const open = (look: Look, use: (page: Page) => Promise<void>) =>
  visit(browser, gateway.portal, { look, token: false, expectedStatuses: [401, 422] }, use);
const signIn = async (page: Page, customer: string, body: object = {}) => {
  await page.goto('about:blank');
  await page.goto((await createLink(gateway, customer, body)).href, { waitUntil: 'networkidle' });
  await page.getByRole('navigation').waitFor();
};
const inspect = async (page: Page, name: string, look: Look) => {
  await takeScreenshot(page, `portal-own-${name}`, look);
  await expectNoSidewaysScroll(page);
  expect(await accessibilityFaults(page)).toEqual([]);
};

it.each(['light', 'tabletDark', 'phone'] as const)(
  "every page with all that is the operator's own: %s",
  async (look) => {
    await open(look, async (page) => {
      await page.goto('/', { waitUntil: 'networkidle' });
      await see(page, 'You are not signed in.');
      await inspect(page, 'bare', look);
      await signIn(page, 'acme');
      await see(page, 'requests are served, and counted as overage');
      await inspect(page, 'usage', look);
      await page.getByRole('link', { name: 'API keys', exact: true }).click();
      await click(page, 'New key');
      await see(page, 'Read <all> conversations');
      await inspect(page, 'new', look);
      await click(page, 'Create and copy');
      await see(page, 'Try it:');
      await inspect(page, 'try', look);
      await signIn(page, 'umbrella');
      await inspect(page, 'suspended', look);
    });
  },
);

it('the bare address leads home without a session; with one, it is the portal', async () => {
  await open('light', async (page) => {
    await page.goto('/', { waitUntil: 'networkidle' });
    await see(page, 'You are not signed in.');
    const home = page.getByRole('link', { name: 'Go to app.example.com' });
    expect(await home.getAttribute('href')).toBe(HOME);
    await expect.poll(() => page.getByRole('heading', { level: 1 }).innerText()).toBe(TITLE);
    await signIn(page, 'acme');
    await page.goto('/', { waitUntil: 'networkidle' });
    await see(page, /left in this hour/);
    expect(await page.getByRole('link', { name: 'Back to app.example.com' }).getAttribute('href')).toBe(HOME);
    await page.getByRole('link', { name: 'API keys', exact: true }).click();
    await page.waitForURL('**/portal/keys');
    await click(page, 'Sign out');
    await see(page, 'You are signed out.');
    expect(await home.getAttribute('href')).toBe(HOME);
    // Where the dashboard says something else, that.
    await signIn(page, 'acme', { return_url: 'https://partner.example/x' });
    await page.getByRole('link', { name: 'Back to partner.example' }).waitFor();
  });
});

it('the logo is drawn with its own style on every page and as the icon, and runs no script, opened by itself too', async () => {
  await open('light', async (page) => {
    await page.goto('/', { waitUntil: 'networkidle' });
    const logo = page.locator('img.logo');
    await logo.waitFor();
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toBe('/portal/logo');
    const [red] = await page.evaluate<number[]>(`(() => {
      const context = document.createElement('canvas').getContext('2d');
      context.drawImage(document.querySelector('img.logo'), 0, 0, 32, 32);
      return [...context.getImageData(16, 16, 1, 1).data];
    })()`);
    expect(red).toBe(0x0a);
    await signIn(page, 'acme');
    await logo.waitFor();
  });
  const page = await browser.newPage();
  await page.goto(`${gateway.portal}/portal/logo`);
  expect(await page.evaluate('[origin, document.documentElement.id]')).toEqual(['null', '']);
  await page.close();
});

it('scopes are chosen by name and description, and the line beside the new key works as it is', async () => {
  await open('light', async (page) => {
    await signIn(page, 'acme');
    await page.goto('/portal/keys');
    await see(
      page,
      `Send a key as Authorization: Bearer … to ${new URL(gateway.public).origin} from your servers only.`,
    );
    await click(page, 'New key');
    await page.locator('dialog [name=name]').fill('Reader');
    await see(page, 'POST /api/v1/conversations/{id}/messages');
    await page.getByLabel('conversations:read').check();
    await click(page, 'Create and copy');
    await see(page, 'Try it:');
    await page.getByRole('button', { name: 'Copy' }).last().click();
    const line = await page.evaluate<string>('navigator.clipboard.readText()');
    const [, name = '', value = '', url = ''] = /^curl -i -H '(\S+): ([^']+)' (\S+)$/.exec(line) ?? [];
    expect(url).toBe(`${new URL(gateway.public).origin}/api/v1/conversations`);
    expect((await fetch(url, { headers: { [name]: value } })).status).toBe(200);
    await click(page, 'Done');
    await page.getByRole('row', { name: /Reader .* for conversations:read/ }).waitFor();

    // Only what the key has can be unchecked, and not all of it.
    await click(page, 'Restrict Reader');
    await expect.poll(() => page.getByRole('checkbox').count()).toBe(1);
    await page.getByLabel('conversations:read').uncheck();
    await click(page, 'Restrict key');
    await see(page, 'must be some of conversations:read');
  });
});

it('a suspended customer sees its plan and the way to support, and is offered no change', async () => {
  await open('light', async (page) => {
    await signIn(page, 'umbrella');
    await see(page, 'growth');
    const support = page.getByRole('link', { name: 'Contact support' });
    expect(await support.getAttribute('href')).toBe('https://example.com/support');
    await page.getByRole('link', { name: 'API keys', exact: true }).click();
    await see(page, 'You have no keys yet.');
    expect(await page.getByRole('button', { name: /New key|Restrict/ }).count()).toBe(0);
  });
});
