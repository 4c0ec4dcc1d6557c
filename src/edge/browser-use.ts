import type { IncomingHttpHeaders } from 'node:http';

/** How to treat a request with a valid API key that a browser sent (setting `auth.browser_keys`). */
export type BrowserKeys = 'allow' | 'warn' | 'reject';

/**
 * Returns whether a request has a header that browsers add and scripts cannot remove: Origin (Fetch §3.2) or
 * Sec-Fetch-Site (Fetch Metadata §2.3). Sec-Fetch-Mode is no evidence: Node.js's own `fetch` sends it.
 */
export function isSentByBrowser(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}
