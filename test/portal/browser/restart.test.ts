/** Sessions of browsers over restarts of the gateway, and over instances of several processes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { freePort } from '../../../bench/free-port.ts';
import { OFFLINE, startBrowser, visit } from '../../console/browser/support/browser.ts';
import { bearer, createCustomerWithKey } from '../../support/admin.ts';
import { startBackend } from '../../support/backend.ts';
import { ADMIN_TOKEN, EMBEDDED_STORE, REDIS_STORE } from '../../support/gateway.ts';
import { startProgram } from '../../support/process.ts';
import { createLink } from '../support.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

it.each([
  [REDIS_STORE, 2],
  [EMBEDDED_STORE, 1],
] as const)(
  'over $name, a session survives a restart, and a key that is rotated after it works in every worker',
  async (kind, workers) => {
    const store = await kind.start();
    onTestFinished(() => store.close());
    const backend = await startBackend();
    onTestFinished(() => backend.close());
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-portal-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'gateway.yaml');
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const anyPort = { host: '127.0.0.1', port: 0 };
    const sections = {
      listen: anyPort,
      ops: anyPort,
      admin: { ...anyPort, token: ADMIN_TOKEN },
      portal: { host: '127.0.0.1', port, public_url: origin },
      // Long enough for a busy machine.
      store: { url: store.url, timeout_ms: 2000 },
      upstream: { urls: [backend.url] },
      workers,
      shutdown: { not_ready_ms: 1, drain_ms: 2000 },
    };
    await writeFile(file, stringify(sections));
    const first = await startProgram({ args: ['--config', file] });
    const old = await createCustomerWithKey(first, { id: 'acme', plan: 'starter' });
    const link = await createLink(first, 'acme');

    await visit(browser, origin, { token: false, expectedStatuses: [OFFLINE] }, async (page) => {
      await page.goto(link.href);
      await page.getByText(/left in this hour/).waitFor();
      await page.getByRole('link', { name: 'API keys' }).click();
      await page.getByText('1 in all').waitFor();
      first.signal('SIGTERM');
      expect((await first.finished).status).toBe(0);
      const second = await startProgram({ args: ['--config', file] });

      await page.reload();
      await page.getByRole('button', { name: /^Rotate / }).click();
      await page.getByRole('button', { name: 'Rotate and copy' }).click();
      await page.getByText('The key is in your clipboard.').waitFor();
      const successor = await page.evaluate<string>('navigator.clipboard.readText()');
      await page.getByRole('button', { name: 'Done' }).click();
      await page.getByText(/works until/).waitFor();
      // Each connection may get another worker.
      for (const key of [old, successor, old, successor, old, successor]) {
        const headers = { ...bearer(key), connection: 'close' };
        const response = await fetch(`${second.public}/v1/conversations`, { headers });
        expect(response.status, await response.text()).toBe(200);
      }
      expect(first.output() + second.output()).not.toContain(link.hash.slice('#code='.length));
    });
  },
);
