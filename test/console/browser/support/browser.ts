/** The pages in Chromium. Every page is watched: what breaks the Content-Security-Policy or leaves the origin fails. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect, inject } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';

/** Name in the storage of the pages' origin. */
const BINDING = 'tollgate-session-binding';
/** Where screenshots go. */
const SCREENSHOTS = process.env.CONSOLE_SCREENSHOTS ?? 'var/console';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
  tablet: { colorScheme: 'light', viewport: { width: 768, height: 1024 } },
  tabletDark: { colorScheme: 'dark', viewport: { width: 768, height: 1024 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
  phoneDark: { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
} as const;
export type Look = keyof typeof LOOKS;
export const LOOK_NAMES = Object.keys(LOOKS) as Look[];

/** Gives a page that is open another look. */
export async function setLook(page: Page, look: Look): Promise<void> {
  const { colorScheme, viewport } = LOOKS[look];
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(viewport);
}

/** Among the expected statuses: calls without any response. */
export const OFFLINE = 0;

export function startBrowser(): Promise<Browser> {
  // The sandbox of Debian's Chromium does not start as root; it loads pages of this machine only.
  return chromium.launch({ executablePath: inject('chromium'), args: ['--no-sandbox'] });
}

export interface VisitOptions {
  readonly look?: Look;
  /** Logs in first, without the login page. False: the page starts without a session. */
  readonly token?: string | false;
  /** Answers that the browser reports as errors although the test wants them, such as 401 for a wrong token. */
  readonly expectedStatuses?: readonly number[];
}

/**
 * Opens a page in a context of its own and closes it afterwards. Fails if the page violated its policy, requested
 * another origin, or reported an error.
 */
export async function visit(
  browser: Browser,
  origin: string,
  { look = 'light', token = ADMIN_TOKEN, expectedStatuses = [] }: VisitOptions,
  use: (page: Page, context: BrowserContext) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({
    ...LOOKS[look],
    baseURL: origin,
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  try {
    const faults = watch(context, origin, [...expectedStatuses, ...(token === false ? [401] : [])]);
    if (token !== false) await logIn(context, { token });
    await use(await context.newPage(), context);
    // Events that were sent before this answer have arrived with it.
    for (const page of context.pages()) await page.evaluate('0');
    if (faults.length > 0) throw new Error(faults.join('\n'));
  } finally {
    await context.close();
  }
}

/** Gets a session as the login page does. */
export async function logIn(context: BrowserContext, { token = ADMIN_TOKEN, origin = '' } = {}): Promise<void> {
  const response = await context.request.post(`${origin}/console/session`, { data: { token } });
  if (!response.ok()) throw new Error(`login: ${response.status()} ${await response.text()}`);
  const { binding } = await response.json();
  const own = new URL(response.url()).origin;
  await context.addInitScript(`if (location.origin === '${own}' && !localStorage.getItem('${BINDING}'))
    localStorage.setItem('${BINDING}', '${binding}')`);
}

/** Returns the list to which everything is added that must not happen in this context. */
function watch(context: BrowserContext, origin: string, expectedStatuses: readonly number[]): string[] {
  const faults: string[] = [];
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(?:data|blob|about):/.test(url)) faults.push(`request to ${url}`);
  });
  context.on('response', (response) => {
    const status = response.status();
    if (status >= 400 && !expectedStatuses.includes(status)) {
      faults.push(`${status}: ${response.request().method()} ${response.url()}`);
    }
  });
  context.on('weberror', (error) => void faults.push(`error: ${error.error().stack ?? error.error()}`));
  context.on('console', (message) => {
    // Violations of the policy are among them. Chromium writes such a line for each response with an error status, which is watched above.
    const isStatus = message.text().startsWith('Failed to load resource: the server responded with a status');
    const isOffline =
      expectedStatuses.includes(OFFLINE) &&
      /net::ERR_(?:INTERNET_DISCONNECTED|CONNECTION_(?:REFUSED|RESET)|EMPTY_RESPONSE)/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !isStatus && !isOffline)
      faults.push(`console: ${message.text()}`);
  });
  return faults;
}

/** Of those that axe calls moderate: everything on a page is in a landmark, and landmarks have different names. */
const MODERATE_RULES = ['region', 'landmark-unique'];

/** Returns the accessibility faults of a page that axe calls serious or critical, or that matter here, one line each. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // Evaluated by the debugger, to which the page's policy does not apply.
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as AxeResults;
  return violations
    .filter(({ id, impact }) => impact === 'serious' || impact === 'critical' || MODERATE_RULES.includes(id))
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html}: ${failureSummary}`),
    );
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** Takes a picture of the whole page, as `<name>-<look>.png`. */
export async function takeScreenshot(page: Page, name: string, look: Look): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  // What stays while the page scrolls would be in the middle of the picture.
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: join(SCREENSHOTS, `${name}-${look}.png`), fullPage: true, animations: 'disabled' });
}

/** Fails if the page is wider than the window. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const widths = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(widths), 'pixels beyond the window').toBeLessThanOrEqual(0);
}
