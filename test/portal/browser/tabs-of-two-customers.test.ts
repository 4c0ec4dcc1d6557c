/**
 * A page of the portal read its session with the binding that it found, and then kept to the binding that was there after
 * the reply. If another tab opened another customer's session meanwhile, the page named the first customer, and created
 * and revoked keys of the second.
 */
import { expect, it, onTestFinished } from 'vitest';
import { startBrowser, visit } from '../../console/browser/support/browser.ts';
import { startSample } from '../../console/browser/support/sample.ts';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { createLink } from '../support.ts';

it('a page that is loaded while another tab opens a session of another customer does not act in that one', async () => {
  const sample = await startSample(EMBEDDED_STORE);
  onTestFinished(() => sample.close());
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  const link = async (customer: string) => (await createLink(sample.gateway, customer)).href;
  await visit(browser, sample.gateway.portal ?? '', { token: false }, async (page, context) => {
    await page.goto(await link('acme'));
    await page.getByRole('navigation').waitFor();
    await page.route(
      '**/portal/session',
      async (route) => {
        const response = await route.fetch();
        const other = await context.newPage();
        await other.goto(await link('globex'));
        await other.getByRole('navigation').waitFor();
        await other.close();
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    const used: (string | undefined)[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/portal/v1/')) used.push(request.headers()['x-tollgate-session-binding']);
    });
    await page.reload();
    await page.getByText('another one was opened in this browser').waitFor();
    const current = await page.evaluate('localStorage.getItem("tollgate-session-binding")');
    expect(used.length).toBeGreaterThan(0);
    expect(used).not.toContain(current);
  });
});
