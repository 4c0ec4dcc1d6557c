import type { IncomingHttpHeaders } from 'node:http';

/** What becomes of a request that a browser sent with a good key. */
export type BrowserKeys = 'allow' | 'warn' | 'reject';

/**
 * Whether a request has fields that browsers add by themselves and scripts cannot take away: Origin (Fetch §3.2) and
 * Sec-Fetch-Site (Fetch Metadata §2.3). Not Sec-Fetch-Mode: Node.js's own `fetch` sends that one.
 */
export function isSentByBrowser(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}
