/** The calls that the console's pages make, and how long they take. */
import { quantile } from '../../bench/statistics.ts';

export const TOKEN = 'measure-the-console-with-32-characters';
const REPEATS = 20;

/** Calls of one page as it opens, except lists that are read to their end. */
export const PAGE_CALLS: readonly string[] = [
  '/status',
  '/admin/v1/usage/near?limit=20',
  '/admin/v1/usage/near?limit=100',
  '/admin/v1/usage/refused?limit=20',
  '/admin/v1/usage/history',
  '/admin/v1/config',
  '/admin/v1/customers?limit=50',
  '/admin/v1/customers?limit=50&plan=starter',
  '/admin/v1/customers?limit=50&plan=enterprise',
  '/admin/v1/customers?limit=50&suspended=true',
  '/admin/v1/customers?limit=50&search=customer-05',
  '/admin/v1/customers?limit=50&search=customer-099999',
  '/admin/v1/customers?limit=50&search=falc',
  '/admin/v1/customers?limit=50&search=Juniper Ins',
  '/admin/v1/customers?limit=50&search=90001',
  '/admin/v1/customers?limit=50&search=missing',
  '/admin/v1/customers/customer-050000',
  '/admin/v1/customers/customer-050000/explain',
  '/admin/v1/customers/customer-050000/keys?limit=50',
  '/admin/v1/customers/customer-050000/usage/history?step=hour',
  '/admin/v1/customers/customer-050000/usage/history?step=day',
  '/admin/v1/keys?limit=50',
  '/admin/v1/keys?limit=50&expiring_days=30',
  '/admin/v1/keys?limit=50&unused_days=30',
  '/admin/v1/usage?limit=1000',
  '/admin/v1/audit?limit=50',
  '/admin/v1/audit?limit=50&customer=customer-000001',
];

/** Lists that a page reads to their end, or until it has rows enough. */
export const WALKS: readonly string[] = [
  '/admin/v1/customers?suspended=true',
  '/admin/v1/customers?search=falcon',
  '/admin/v1/customers?search=missing',
  '/admin/v1/customers?plan=enterprise',
  '/admin/v1/keys?expiring_days=30',
  '/admin/v1/keys?unused_days=30',
  '/admin/v1/usage',
];
const WALK_PAGE = 1000;

/** What each of five open consoles asks for again every 10 seconds: Overview twice, a customer, near, Configuration. */
export const POLLS: readonly (readonly string[])[] = [
  ['/status', '/admin/v1/usage/near?limit=20', '/admin/v1/usage/refused?limit=20', '/admin/v1/usage/history'],
  ['/status', '/admin/v1/usage/near?limit=20', '/admin/v1/usage/refused?limit=20', '/admin/v1/usage/history'],
  ['/admin/v1/customers/customer-000001/explain', '/admin/v1/customers/customer-000001/usage/history?step=hour'],
  ['/admin/v1/usage/near?limit=100'],
  ['/status'],
];

/** What an open page of the portal asks for again every 30 seconds. It asks for the history once a minute. */
export const PORTAL_POLL = '/portal/v1/usage';
export const PORTAL_HISTORY = '/portal/v1/usage/history?step=hour';

/** Returns a token for the portal of this customer. */
export async function portalToken(admin: string, customer: string): Promise<string> {
  const response = await fetch(`${admin}/admin/v1/customers/${customer}/portal-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: ['usage:read'] }),
  });
  const { token } = (await response.json()) as { token?: string };
  if (token === undefined) throw new Error(`no token: ${response.status}`);
  return token;
}

export async function call(origin: string, path: string, token: string = TOKEN): Promise<unknown> {
  const response = await fetch(origin + path, { headers: { authorization: `Bearer ${token}` } });
  const body = await response.json();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`);
  return body;
}

export interface Timing {
  readonly path: string;
  readonly firstMs: number;
  readonly medianMs: number;
  readonly worstMs: number;
}

/** The first call, then `REPEATS` more, one after the other. */
export async function timeCall(origin: string, path: string): Promise<Timing> {
  const times: number[] = [];
  for (let i = 0; i <= REPEATS; i++) {
    const startedMs = performance.now();
    await call(origin, path);
    times.push(performance.now() - startedMs);
  }
  const [firstMs = Number.NaN, ...others] = times;
  return { path, firstMs, medianMs: quantile(others, 0.5), worstMs: Math.max(...others) };
}

export interface Walk {
  readonly path: string;
  readonly firstRowsMs: number;
  readonly wholeMs: number;
  readonly calls: number;
  readonly rows: number;
  readonly worstCallMs: number;
}

/** Reads a list to its end, in the pages that the console reads. */
export async function timeWalk(origin: string, path: string): Promise<Walk> {
  const startedMs = performance.now();
  let [firstRowsMs, worstCallMs, calls, rows] = [Number.NaN, 0, 0, 0];
  let cursor: string | null = '';
  do {
    const beganMs = performance.now();
    const address: string = `${path}${path.includes('?') ? '&' : '?'}limit=${WALK_PAGE}${cursor && `&cursor=${cursor}`}`;
    const page = (await call(origin, address)) as { items: unknown[]; next_cursor: string | null };
    worstCallMs = Math.max(worstCallMs, performance.now() - beganMs);
    calls++;
    if (rows === 0 && page.items.length > 0) firstRowsMs = performance.now() - startedMs;
    rows += page.items.length;
    cursor = page.next_cursor;
  } while (cursor !== null);
  return { path, firstRowsMs, wholeMs: performance.now() - startedMs, calls, rows, worstCallMs };
}
