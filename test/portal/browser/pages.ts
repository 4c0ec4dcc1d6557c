/** The pages of the portal, as a developer at a customer's company uses them, in a real browser over each store. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  accessibilityFaults,
  expectNoSidewaysScroll,
  type Look,
  OFFLINE,
  startBrowser,
  takeScreenshot,
  type VisitOptions,
  visit,
} from '../../console/browser/support/browser.ts';
import { type Sample, startSample } from '../../console/browser/support/sample.ts';
import { bearer, callAdmin } from '../../support/admin.ts';
import { REDIS_STORE, type StoreKind } from '../../support/gateway.ts';
import { createLink } from '../support.ts';

const READ = ['usage:read', 'keys:read'];
const WRITE = [...READ, 'keys:write'];
const KEPT =
  'document.documentElement.outerHTML + location.href + JSON.stringify([localStorage, sessionStorage, history.state])';

export function portalPages(store: StoreKind): void {
  let browser: Browser;
  let sample: Sample;
  let origin: string;
  beforeAll(async () => {
    sample = await startSample(store);
    origin = sample.gateway.portal ?? '';
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await sample.close();
  });

  const link = async (customer: string, body: object = {}) => {
    const { href } = await createLink(sample.gateway, customer, { scopes: WRITE, ...body });
    return href;
  };
  const visitPortal = (options: VisitOptions, use: (page: Page, context: BrowserContext) => Promise<void>) =>
    visit(browser, origin, { token: false, ...options }, use);
  const open = (customer: string, use: (page: Page) => Promise<void>, body: object = {}, options: VisitOptions = {}) =>
    visitPortal(options, async (page) => {
      await page.goto(await link(customer, body), { waitUntil: 'networkidle' });
      // The code of the link is spent, and the session is there.
      await page.getByRole('navigation').waitFor();
      await use(page);
    });
  const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
  const act = async (page: Page, action: string, key: string) => {
    const menu = page.getByLabel(`Actions on ${key}`);
    const button = page.getByRole('button', { name: `${action} ${key}`, exact: true }).first();
    await menu.or(button).first().waitFor();
    if ((await menu.count()) > 0) await menu.first().click();
    await button.click();
  };
  const goTo = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).click();
  const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
  const statusWith = async (key: string) => {
    const response = await fetch(`${sample.gateway.public}/v1/conversations?limit=1`, { headers: bearer(key) });
    await response.arrayBuffer();
    return response.status;
  };
  const clipboard = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()');

  // The looks do not depend on the store.
  const looks: readonly Look[] =
    store === REDIS_STORE ? ['light', 'dark', 'tablet', 'tabletDark', 'phone', 'phoneDark', 'narrow'] : ['light'];
  const inspect = async (page: Page, name: string, look: Look) => {
    await takeScreenshot(page, name === 'portal' ? name : `portal-${name}`, look);
    await expectNoSidewaysScroll(page);
    expect(await accessibilityFaults(page)).toEqual([]);
  };

  it.each(looks)('every page and dialog is accessible and fits the window: %s', async (look) => {
    const body = { return_url: 'https://app.example.com/account' };
    const use = async (page: Page) => {
      await see(page, /left in this hour/);
      await inspect(page, 'usage', look);
      await click(page, '7 days');
      await page.waitForLoadState('networkidle');
      await inspect(page, 'usage-7-days', look);
      await goTo(page, 'API keys');
      await see(page, 'in all');
      await inspect(page, 'keys', look);
      await act(page, 'Rotate', 'Billing, production');
      await inspect(page, 'rotate', look);
      await page.getByLabel('The old key works for').selectOption('604800');
      await click(page, 'Rotate and copy');
      await see(page, 'The key is in your clipboard.');
      await inspect(page, 'new-key', look);
      await click(page, 'Done');
      await see(page, /works until/);
      await inspect(page, 'rotated', look);
      await act(page, 'Restrict', 'Billing, production');
      await page.getByLabel('Allowed addresses').fill('203.0.113.0/24');
      await inspect(page, 'restrict', look);
      await click(page, 'Cancel');
      await act(page, 'Revoke', 'Billing, production');
      await inspect(page, 'revoke', look);
      await click(page, 'Cancel');
    };
    await visitPortal({ look, expectedStatuses: [401] }, async (page) => {
      const keys = '/admin/v1/customers/globex/keys';
      const expiresAt = new Date(Date.now() + 5 * 86_400_000).toISOString();
      await callAdmin(sample.gateway, keys, { body: { name: 'Billing, production', expires_at: expiresAt } });
      await page.goto(await link('globex', body), { waitUntil: 'networkidle' });
      await use(page);
      for (const { id, name } of (await callAdmin(sample.gateway, keys)).body.items) {
        if (name !== null) await callAdmin(sample.gateway, `/admin/v1/keys/${id}`, { method: 'DELETE' });
      }
      const used = await link('initech', body);
      await page.goto('about:blank');
      await page.goto(used, { waitUntil: 'networkidle' });
      await see(page, /The limit is used up/);
      await inspect(page, 'portal', look);
      await page.goto('about:blank');
      await page.goto(await link('umbrella'), { waitUntil: 'networkidle' });
      await see(page, 'This account is suspended.');
      await inspect(page, 'suspended', look);
      await page.goto('about:blank');
      await page.goto(used, { waitUntil: 'networkidle' });
      await see(page, 'This link was used before');
      await inspect(page, 'used-link', look);
    });
  });

  it('a link opens the usage: what is left, until when, and the refusals in words, with what to do', async () => {
    await open('initech', async (page) => {
      await see(page, 'of 20 requests left in this hour');
      await see(
        page,
        /The limit is used up: requests are refused with 429\. More become available in \d+ min, at \d\d:\d\d\./,
      );
      await see(page, 'Limit per hour');
      const refused = page.getByRole('table', { name: 'Requests that were refused in the last 24 hours' });
      await expect.poll(() => refused.innerText()).toContain('Quota exceeded');
      await expect.poll(() => refused.innerText()).toContain('Wait for the seconds in Retry-After, then try again');
    });
  });

  it('the code of a link leaves the address and its history entry before anything else runs, and is in no request but one', async () => {
    const href = await link('acme');
    const code = new URL(href).hash.slice('#code='.length);
    await visitPortal({}, async (page) => {
      const sent: string[] = [];
      page.on('request', (request) => {
        sent.push(
          `${request.method()} ${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ''}`,
        );
      });
      // Nothing else of the page arrives, as if the network broke down.
      await page.route(/\/(?:main|preact|api|pages)\.(?:js|css)$/, (route) => route.abort());
      await page.goto(href);
      await expect.poll(() => page.url()).toBe(`${origin}/portal`);
      await page.unrouteAll();
      expect(sent.filter((request) => request.includes(code))).toEqual([]);
    }).catch((error: Error) => {
      // What was aborted is reported as faults of the page.
      if (!error.message.includes('net::ERR_FAILED')) throw error;
    });

    await visitPortal({}, async (page, context) => {
      const sent: string[] = [];
      page.on('request', (request) => {
        sent.push(
          `${request.method()} ${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ''}`,
        );
      });
      await page.goto('about:blank');
      // As from a dashboard, and not typed.
      await page.evaluate(`location.href = '${href}'`);
      await page.waitForURL('**/portal');
      await see(page, /left in this hour/);
      expect(sent.filter((request) => request.includes(code))).toEqual([
        expect.stringMatching(new RegExp(`^POST ${origin}/portal/session .*\\{"code":"${code}"\\}$`)),
      ]);
      expect(sent.filter((request) => /"referer":"[^"]/.test(request))).toEqual([]);
      const session = await context.newCDPSession(page);
      const { entries } = await session.send('Page.getNavigationHistory');
      expect(entries.map(({ url }) => url)).toEqual(['about:blank', `${origin}/portal`]);
      expect(await page.evaluate(KEPT)).not.toContain(code);
    });
    expect(JSON.stringify(sample.gateway.logs)).not.toContain(code);
  });

  it('a link works once: the second time, the page says so and what to do', async () => {
    const href = await link('acme');
    await visitPortal({}, async (page) => {
      await page.goto(href);
      await see(page, /left in this hour/);
    });
    await visitPortal({}, async (page) => {
      await page.goto(href);
      await see(page, 'This link was used before, or is older than five minutes.');
      await see(page, /open them from your account, where you get a new link each time/);
      expect(await page.getByRole('link', { name: 'Support' }).getAttribute('href')).toBe(
        'https://example.com/support',
      );
      await page.goto('/portal/keys');
      await see(page, 'You are not signed in.');
    });
  });

  it('a new key is in the clipboard, works, is shown once, and is kept nowhere', async () => {
    await open('stark', async (page) => {
      await goTo(page, 'API keys');
      await click(page, 'New key');
      await page.locator('dialog [name=name]').fill('Reports');
      await click(page, 'Create and copy');
      await see(page, 'The key is in your clipboard.');
      const key = await clipboard(page);
      await expect.poll(() => page.getByLabel('API key', { exact: true }).inputValue()).toBe(key);
      await click(page, 'Done');
      expect(await page.evaluate(KEPT)).not.toContain(key);
      await page.getByRole('row', { name: /Reports/ }).waitFor();
      expect(await statusWith(key)).toBe(200);
      expect(JSON.stringify(sample.gateway.logs)).not.toContain(key);
    });
  });

  it('after a rotation both keys work, and the page says until when the old one does', async () => {
    const old = (await callAdmin(sample.gateway, '/admin/v1/customers/stark/keys', { body: { name: 'Import' } })).body
      .key;
    await open('stark', async (page) => {
      await goTo(page, 'API keys');
      await click(page, 'Rotate Import');
      await page.getByLabel('The old key works for').selectOption('3600');
      await click(page, 'Rotate and copy');
      await see(page, 'The key is in your clipboard.');
      const successor = await clipboard(page);
      await click(page, 'Done');
      expect(successor).not.toBe(old);
      await expect
        .poll(() => page.getByRole('row', { name: /Import .* rotated works until \d+ \w+, \d\d:\d\d/ }).innerText())
        .toContain(`→ ${successor.slice(0, 10)}`);
      await expect.poll(() => page.getByRole('row', { name: /Import .* live/ }).count()).toBe(1);
      expect([await statusWith(old), await statusWith(successor)]).toEqual([200, 200]);

      // Without a grace, as after a leak.
      await click(page, 'Rotate Import');
      await page.getByLabel('The old key works for').selectOption('0');
      await click(page, 'Rotate and copy');
      await see(page, 'The key is in your clipboard.');
      await expect.poll(() => statusWith(successor)).toBe(401);
      expect(await statusWith(await clipboard(page))).toBe(200);
    });
  });

  it('a key is renamed, and revoked after a confirmation that focuses Cancel', async () => {
    const { key } = (await callAdmin(sample.gateway, '/admin/v1/customers/stark/keys', { body: { name: 'Old job' } }))
      .body;
    await open('stark', async (page) => {
      await goTo(page, 'API keys');
      await click(page, 'Rename Old job');
      await page.locator('dialog [name=name]').fill('Night job');
      await click(page, 'Save');
      await click(page, 'Revoke Night job');
      await see(page, /This cannot be undone/);
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Cancel');
      await page.keyboard.press('Escape');
      expect(await statusWith(key)).toBe(200);
      await click(page, 'Revoke Night job');
      await click(page, 'Revoke key');
      await page.getByRole('row', { name: /Night job .* revoked/ }).waitFor();
      await expect.poll(() => statusWith(key)).toBe(401);
    });
    const [, newest] = (await callAdmin(sample.gateway, '/admin/v1/audit?customer=stark&limit=2')).body.items;
    expect(newest).toMatchObject({ actor: 'portal:stark', action: expect.stringMatching(/^key\./) });
  });

  it('a key is restricted, which its row shows, and the form says what it may at most have', async () => {
    const { key } = (await callAdmin(sample.gateway, '/admin/v1/customers/stark/keys', { body: { name: 'Partner' } }))
      .body;
    const use = async (page: Page) => {
      await goTo(page, 'API keys');
      await click(page, 'Restrict Partner');
      await page.getByLabel('Allowed addresses').fill('10.0.0.0/8');
      await click(page, 'Restrict key');
      await page.getByRole('row', { name: /Partner .* from 10\.0\.0\.0\/8/ }).waitFor();
      await expect.poll(() => statusWith(key)).toBe(403);
      await click(page, 'Restrict Partner');
      // This API has no scopes.
      expect(await page.getByText('Scopes').count()).toBe(0);
      await page.getByLabel('Allowed addresses').fill('10.0.0.0/7');
      await click(page, 'Restrict key');
      await see(page, 'must be within 10.0.0.0/8');
      await page.getByLabel('Allowed addresses').fill('10.1.0.0/16');
      await click(page, 'Restrict key');
      await page.getByRole('row', { name: /Partner .* from 10\.1\.0\.0\/16/ }).waitFor();
    };
    await open('stark', use, {}, { expectedStatuses: [422] });
  });

  it('a page shows what the scopes allow, and of a suspended customer nothing that writes', async () => {
    const writing = /^(?:New key|Rotate|Rename|Restrict|Revoke)/;
    const use = async (page: Page) => {
      await goTo(page, 'API keys');
      await see(page, 'in all');
      expect(await page.getByRole('button', { name: writing }).count()).toBe(0);
    };
    await open('stark', use, { scopes: READ });
    await open('umbrella', use);
    await open('umbrella', async (page) => {
      await see(page, /Its requests are refused, and its keys can be seen but not changed/);
      await see(page, 'Used in the last 60 minutes');
      await expect.poll(() => page.getByText(/requests are refused|become available/).count()).toBe(1);
    });
    await open('stark', async (page) => expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0), {
      scopes: ['usage:read'],
    });
    await open(
      'stark',
      async (page) => expect.poll(() => page.getByRole('heading', { level: 1 }).innerText()).toBe('API keys'),
      {
        scopes: ['keys:read'],
      },
    );
  });

  it('pages name no other plan, no other customer, and nothing of the installation', async () => {
    await open('globex', async (page) => {
      const responses: string[] = [];
      page.on('response', async (response) => {
        if (response.url().includes('/portal/v1/')) responses.push(await response.text().catch(() => ''));
      });
      await page.reload({ waitUntil: 'networkidle' });
      await goTo(page, 'API keys');
      await see(page, 'in all');
      const shown = `${await page.evaluate('document.body.innerText')} ${responses.join()}`;
      expect(responses.length).toBeGreaterThan(2);
      expect(shown).toMatch(/professional/);
      expect(shown).not.toMatch(/starter|enterprise|initech|hooli|tollgate|redis|sqlite/i);
    });
  });

  it('the way back is shown while there is a session, and after it ended', async () => {
    const body = { return_url: 'https://app.example.com/account?tab=api' };
    const use = async (page: Page) => {
      const back = page.getByRole('link', { name: 'Back to app.example.com' });
      expect(await back.getAttribute('href')).toBe(body.return_url);
      await click(page, 'Sign out');
      await see(page, 'You are signed out.');
      const away = page.getByRole('link', { name: 'Go to app.example.com' });
      expect(await away.getAttribute('href')).toBe(body.return_url);
      await page.reload();
      await see(page, 'You are not signed in.');
    };
    await open('acme', use, body);
  });

  it('when the operator ends the sessions, the page says so at its next call', async () => {
    await open('acme', async (page) => {
      await see(page, /left in this hour/);
      await callAdmin(sample.gateway, '/admin/v1/customers/acme/portal-sessions', { method: 'DELETE' });
      await goTo(page, 'API keys');
      await see(page, /^Your session has ended/);
      expect(await page.evaluate('document.body.innerText')).not.toContain('requests left');
    });
  });

  it('a tab of one customer shows and changes nothing of another one whose link the same browser opens later', async () => {
    await visitPortal({}, async (page, context) => {
      await page.goto(await link('acme'));
      await see(page, 'Acme Logistics');
      await goTo(page, 'API keys');
      await see(page, 'in all');
      // As in a browser with tabs, one that is behind another does not poll.
      await page.evaluate("Object.defineProperty(document, 'hidden', { value: true })");
      const other = await context.newPage();
      await other.goto(await link('hooli'));
      await see(other, 'Hooli');
      const before = (await callAdmin(sample.gateway, '/admin/v1/customers/hooli/keys')).body.items.length;
      await page.bringToFront();
      await click(page, 'New key');
      await click(page, 'Create and copy');
      await see(page, /another one was opened in this browser/);
      const after = (await callAdmin(sample.gateway, '/admin/v1/customers/hooli/keys')).body.items.length;
      expect(after).toBe(before);
      // The session that was opened last goes on.
      await other.reload();
      await see(other, 'Hooli');
    });
  });

  it('everything is reached by keyboard: a skip link, dialogs that close, and the focus where it was', async () => {
    await open('stark', async (page) => {
      await page.keyboard.press('Tab');
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
      await page.keyboard.press('Enter');
      await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
      await goTo(page, 'API keys');
      await page.getByRole('button', { name: 'New key' }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('New key');
    });
  });

  it('while the gateway does not respond, one bar says since when, and all is loaded again after', async () => {
    const use = async (page: Page) => {
      await see(page, /left in this hour/);
      await page.context().setOffline(true);
      await goTo(page, 'API keys');
      await see(page, /^The gateway cannot be reached\. Everything here is as of/);
      await page.context().setOffline(false);
      await page.getByRole('alert').waitFor({ state: 'detached' });
      await see(page, 'in all');
    };
    await open('stark', use, {}, { expectedStatuses: [OFFLINE] });
  });
}
