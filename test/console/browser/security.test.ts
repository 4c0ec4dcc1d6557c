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
import {
  ADMIN_TOKEN,
  EMBEDDED_STORE,
  startTestGateway,
  type TestGateway,
  type TestStore,
} from '../../support/gateway.ts';
import { logIn, startBrowser, visit } from './support/browser.ts';

let browser: Browser;
let store: TestStore;
let gateway: TestGateway;
let origin: string;
let attacker: Server;
let attackerPort: number;
/** What the browser sent to the attacker last. */
let receivedCookies = '';
beforeAll(async () => {
  store = await EMBEDDED_STORE.start();
  gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: 'http://127.0.0.1:9' });
  origin = gateway.admin ?? '';
  attacker = createServer((req, res) => {
    receivedCookies = req.headers.cookie ?? '';
    const name = `tollgate_session_${new URL(origin).port}`;
    const paths = ['/', '/admin', '/admin/v1', '/console', '/console/session'];
    // As many ways to set a cookie of the console's name as a server has; without the port, it was the name once.
    const cookies = paths.flatMap((path) => [
      `${name}=shadow; Path=${path}`,
      `${name}=secure; Path=${path}; Secure; HttpOnly`,
      `tollgate_session=other; Path=${path}`,
    ]);
    if (req.url === '/shadow') res.setHeader('Set-Cookie', cookies);
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
      headers: {
        'content-type': 'application/json',
        'x-tollgate-session-binding': localStorage.getItem('tollgate-session-binding'),
      },
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
    expect(await context.cookies()).toMatchObject([
      { name: expect.stringMatching(/^tollgate_session_\d+$/), httpOnly: true, sameSite: 'Strict' },
    ]);
  });
});

it('a program on another port receives the cookie of the browser, and cannot use it', async () => {
  await attack('127.0.0.1', async (page) => {
    expect(receivedCookies).toMatch(/^tollgate_session_\d+=./);
    expect(await page.evaluate('localStorage.length')).toBe(0);
    for (const path of ['/admin/v1/customers', '/console/session', '/status']) {
      const headers = { cookie: receivedCookies, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
      expect((await fetch(origin + path, { headers })).status).toBe(401);
      const body = JSON.stringify({ id: 'replayed', plan: 'starter' });
      const change = await fetch(`${origin}/admin/v1/customers`, { method: 'POST', headers, body });
      expect(change.status).toBe(401);
    }
  });
  expect(await customerIds()).toEqual(['own']);
});

it('a program on another port that sets cookies of the same name stops neither a session nor a new login', async () => {
  const context = await browser.newContext({ baseURL: origin });
  const page = await context.newPage();
  const logIn = async () => {
    await page.goto('/console');
    await page.getByLabel('Admin token').fill(ADMIN_TOKEN);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('All is well.').waitFor();
  };
  await logIn();
  const [session] = await context.cookies();
  await page.goto(`http://127.0.0.1:${attackerPort}/shadow`);
  const after = await context.cookies();
  expect(after.length).toBeGreaterThan(5);
  // One with the path of the session replaced it, and the new login replaces that one.
  expect(after).not.toContainEqual(session);
  await logIn();
  await page.goto('/console/customers');
  await page.getByRole('link', { name: 'own' }).waitFor();
  await context.close();
});

it('the address of a page that does not exist is no error, also if every object has a property of its name', async () => {
  await visit(browser, origin, {}, async (page) => {
    for (const name of ['constructor', '__proto__', 'toString']) {
      await page.goto(`/console/${name}`);
      await page.getByText('The console has no such page.').waitFor();
    }
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
