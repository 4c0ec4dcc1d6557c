/**
 * A link that was pasted into the address bar of an open portal tab did nothing: only the fragment changes, which loads no
 * page. Its code, which is good for five minutes, stayed in the address and the history.
 */
import { expect, it, onTestFinished } from 'vitest';
import { startBrowser, visit } from '../../console/browser/support/browser.ts';
import { startSample } from '../../console/browser/support/sample.ts';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { createLink } from '../support.ts';

it('a link that is opened in a tab of the portal opens its session, and leaves the address', async () => {
  const sample = await startSample(EMBEDDED_STORE);
  onTestFinished(() => sample.close());
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  const link = async (customer: string) => (await createLink(sample.gateway, customer)).href;
  await visit(browser, sample.gateway.portal ?? '', { token: false, expectedStatuses: [401] }, async (page) => {
    await page.goto('/portal');
    await page.getByText('You are not signed in').waitFor();
    for (const customer of ['acme', 'globex']) {
      const opened = page.waitForResponse((response) => response.request().method() === 'POST');
      await page.evaluate(`location.href = ${JSON.stringify(await link(customer))}`);
      const { customer: shown } = (await (await opened).json()) as { customer: string };
      expect(shown).toBe(customer);
      await page.getByRole('navigation').waitFor();
      expect(new URL(page.url()).hash).toBe('');
    }
    await page.goBack();
    expect(page.url()).not.toContain('code=');
  });
});
