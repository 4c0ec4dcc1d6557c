import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STORES } from '../../support/gateway.ts';
import { startBrowser, visit } from './support/browser.ts';
import { type Sample, startSample } from './support/sample.ts';

const MAX_FIRST_LOAD_BYTES = 120 * 1024;

describe.each(STORES)('over $name', (store) => {
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

  it('the first load takes at most 120 KB on the wire', async () => {
    await visit(browser, sample.origin, {}, async (page, context) => {
      const sizes: Promise<[path: string, bytes: number]>[] = [];
      context.on('requestfinished', (request) => {
        const { pathname } = new URL(request.url());
        if (!pathname.startsWith('/console')) return;
        const measured = request
          .sizes()
          .then(({ responseBodySize, responseHeadersSize }) => responseBodySize + responseHeadersSize);
        sizes.push(measured.then((bytes) => [pathname, bytes]));
      });
      await page.goto('/console', { waitUntil: 'networkidle' });
      const first = await Promise.all(sizes);
      expect(first.length).toBeGreaterThan(3);
      expect(
        first.reduce((sum, [, bytes]) => sum + bytes, 0),
        JSON.stringify(first),
      ).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES);
    });
  });
});
