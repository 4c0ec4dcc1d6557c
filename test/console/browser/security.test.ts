/**
 * What an attacker's page can do to a browser with a session of the console. The listeners are real: another port of the
 * same host is the same site, so the browser sends the session cookie even with SameSite=Strict.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { callAdmin } from '../../support/admin.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../../support/gateway.ts';
import { logIn, startBrowser, visit } from './support/browser.ts';

let browser: Browser;
let store: TestStore;
let gateway: TestGateway;
let origin: string;
let attacker: Server;
let attackerPort: number;
beforeAll(async () => {
  store = await EMBEDDED_STORE.start();
  gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9' });
  origin = gateway.admin ?? '';
  attacker = createServer((_req, res) => {
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>attacker</title>');
  }).listen(0, '0.0.0.0');
  await once(attacker, 'listening');
  attackerPort = (attacker.address() as AddressInfo).port;
  browser = await startBrowser();
});
afterAll(async () => {
  await browser.close();
  attacker.closeAllConnections();
  attacker.close();
  await gateway.close();
  await store.close();
});

/** Opens the attacker's page in a browser that has a session. */
async function attack(host: string, use: (page: Page) => Promise<void>): Promise<void> {
  const context = await browser.newContext({ baseURL: origin });
  try {
    await logIn(context);
    const page = await context.newPage();
    await page.goto(`http://${host}:${attackerPort}/`);
    await use(page);
  } finally {
    await context.close();
  }
}

async function customerIds(): Promise<string[]> {
  const { body } = await callAdmin(gateway, '/admin/v1/customers');
  return body.items.map(({ id }: { id: string }) => id);
}

const SITES = ['127.0.0.1', 'localhost'];

it('a page of the console itself can change something, so the cases below fail for their own reason', async () => {
  await visit(browser, origin, { token: false }, async (page, context) => {
    await logIn(context);
    await page.goto('/console');
    const status = await page.evaluate(`fetch('/admin/v1/customers', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'own', plan: 'starter' }),
    }).then((response) => response.status)`);
    expect(status).toBe(201);
  });
  expect(await customerIds()).toEqual(['own']);
});

it.each(SITES)('a form of a page on %s changes nothing', async (host) => {
  await attack(host, async (page) => {
    const answered = page.waitForResponse((response) => response.url().startsWith(origin));
    await page.evaluate(`(() => {
      const form = document.createElement('form');
      form.method = 'POST';
      form.action = '${origin}/admin/v1/customers';
      form.enctype = 'text/plain';
      const input = document.createElement('input');
      input.name = '{"id":"forged","plan":"starter","name":"';
      input.value = '"}';
      form.append(input);
      document.body.append(form);
      form.submit();
    })()`);
    // Without a cookie, or with one from a foreign page.
    expect([401, 403]).toContain((await answered).status());
  });
  expect(await customerIds()).toEqual(['own']);
});

it.each(SITES)('a fetch of a page on %s changes nothing and reads nothing', async (host) => {
  await attack(host, async (page) => {
    for (const init of [
      `{ method: 'POST', mode: 'no-cors', body: '{"id":"forged","plan":"starter"}' }`,
      `{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"id":"forged","plan":"starter"}' }`,
      `{}`,
      `{ mode: 'no-cors' }`,
    ]) {
      const read = await page.evaluate(
        `fetch('${origin}/admin/v1/customers', { credentials: 'include', ...${init} })
           .then((response) => response.text(), () => '')`,
      );
      expect(read, init).toBe('');
    }
  });
  expect(await customerIds()).toEqual(['own']);
});

it.each(SITES)('a page on %s cannot frame the console', async (host) => {
  await attack(host, async (page) => {
    const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'));
    await page.evaluate(`(() => {
      const frame = document.createElement('iframe');
      frame.src = '${origin}/console';
      document.body.append(frame);
    })()`);
    await refused;
  });
});

it('scripts of the page cannot read the session cookie', async () => {
  await visit(browser, origin, {}, async (page, context) => {
    await page.goto('/console');
    expect(await page.evaluate('document.cookie')).toBe('');
    expect(await context.cookies()).toMatchObject([{ name: 'tollgate_session', httpOnly: true, sameSite: 'Strict' }]);
  });
});

it('the harness fails a page that violates its policy or requests another origin', async () => {
  const visiting = (script: string) =>
    visit(browser, origin, {}, async (page) => {
      await page.goto('/console');
      await page.evaluate(script);
    });
  const addScript = `document.head.append(Object.assign(document.createElement('script'), { textContent: '1' }))`;
  await expect(visiting(addScript)).rejects.toThrow(/Content Security Policy directive 'script-src 'self'/);
  const elsewhere = `fetch('http://localhost:${attackerPort}/').catch(() => undefined)`;
  await expect(visiting(elsewhere)).rejects.toThrow(/Content Security Policy directive: "connect-src 'self'/);
});
