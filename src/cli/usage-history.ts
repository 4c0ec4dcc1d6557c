/** Commands for the usage history: of a customer, of all plans, customers near their limits, and the export. */
import type { z } from 'zod';
import {
  NEAR_CUSTOMERS,
  type NearCustomerDocument,
  REFUSED_CUSTOMERS,
  type RefusedCustomerDocument,
  USAGE_HISTORY,
  USAGE_TOTALS,
} from '../admin-api/responses.ts';
import { type AdminClient, pathOf } from '../admin-client/admin-client.ts';
import type { AdminOptions, DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { print, printJson, printList, remark } from './output.ts';
import { type Columns, formatTable, shortTime } from './table.ts';

export interface RangeOptions extends DocumentOptions {
  /** ISO 8601. */
  readonly from?: string;
  readonly to?: string;
  readonly step: 'hour' | 'day';
}

export interface NearOptions extends DocumentOptions {
  /** Percent of the limit. */
  readonly above: number;
}

export interface ExportOptions extends AdminOptions {
  readonly from?: string;
  readonly to?: string;
  readonly format: string;
  readonly cursor?: string;
}

const BAR_WIDTH = 40;
const BAR_PARTS = ' ▏▎▍▌▋▊▉█';
/** Customers in one response. A response is printed when it is complete, so it must fit into memory. */
const EXPORT_CUSTOMERS = '100';

const NEAR_COLUMNS: Columns<NearCustomerDocument> = {
  CUSTOMER: ({ customer }) => customer,
  PLAN: ({ plan }) => plan,
  USED: ({ used }) => used,
  'PER HOUR': ({ limit }) => limit,
  PERCENT: ({ percent }) => percent,
  'MORE IN SECONDS': ({ reset_seconds }) => reset_seconds,
};

const REFUSED_COLUMNS: Columns<RefusedCustomerDocument> = {
  CUSTOMER: ({ customer }) => customer,
  'REFUSED WITH': ({ code }) => code,
  TIMES: ({ count }) => count,
  FIRST: ({ first_at: at }) => shortTime(at),
  LAST: ({ last_at: at }) => shortTime(at),
  'LAST KEY': ({ key_id: id }) => id,
};

export async function showHistory(customer: string, options: RangeOptions): Promise<void> {
  const client = await connect(options);
  const path = pathOf`/admin/v1/customers/${customer}/usage/history`;
  const history = await client.get(USAGE_HISTORY, `${path}?${rangeOf(options)}`);
  if (options.json) return printJson(history);
  const most = Math.max(1, ...history.points.map(({ requests }) => requests));
  const columns: Columns<(typeof history.points)[number]> = {
    [options.step === 'day' ? 'DAY (UTC)' : 'HOUR (UTC)']: ({ start }) => timeOf(start, options),
    REQUESTS: ({ requests }) => requests,
    REFUSED: ({ refused }) => refused,
    '': ({ requests, open }) => `${bar(requests / most)}${open ? ' (not over)' : ''}` || ' ',
  };
  await print(formatTable(history.points, columns));
}

export async function showTotals(options: RangeOptions): Promise<void> {
  const client = await connect(options);
  const totals = await client.get(USAGE_TOTALS, `/admin/v1/usage/history?${rangeOf(options)}`);
  if (options.json) return printJson(totals);
  const rows = totals.points.flatMap(({ start, plans }) =>
    Object.entries(plans).map(([plan, counts]) => ({ start, plan, ...counts })),
  );
  if (rows.length === 0) return remark('Nothing was counted in this time.');
  const columns: Columns<(typeof rows)[number]> = {
    [options.step === 'day' ? 'DAY (UTC)' : 'HOUR (UTC)']: ({ start }) => timeOf(start, options),
    PLAN: ({ plan }) => plan,
    REQUESTS: ({ requests }) => requests,
    REFUSED: ({ refused }) => refused,
    'UPSTREAM ERRORS': ({ upstream_errors }) => upstream_errors,
  };
  await print(formatTable(rows, columns));
}

export async function listNear(options: NearOptions): Promise<void> {
  const client = await connect(options);
  const near = await client.get(NEAR_CUSTOMERS, `/admin/v1/usage/near?above=${options.above}&limit=1000`);
  if (options.json) return printJson(near);
  await printList('customers near their limits', NEAR_COLUMNS, near, options);
}

export async function listRefused(options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const refused = await client.get(REFUSED_CUSTOMERS, '/admin/v1/usage/refused?limit=1000');
  if (options.json) return printJson(refused);
  await printList('refused customers', REFUSED_COLUMNS, refused, options);
}

/** Prints whole pages only, so that an export that failed can be continued without repeating a line. */
export async function exportUsage({ from, to, format, cursor, ...options }: ExportOptions): Promise<void> {
  const client = await connect(options);
  const query = { format, limit: EXPORT_CUSTOMERS, ...(from && { from }), ...(to && { to }) };
  let next: string | undefined =
    `/admin/v1/usage/export?${new URLSearchParams({ ...query, ...(cursor && { cursor }) })}`;
  while (next !== undefined) {
    const page = await readPage(client, next);
    await print(page.text);
    next = page.next;
  }
}

async function readPage(client: AdminClient, path: string): Promise<{ text: string; next: string | undefined }> {
  try {
    return await client.getText(path);
  } catch (error) {
    const cursor = new URLSearchParams(path.slice(path.indexOf('?'))).get('cursor');
    if (cursor !== null)
      remark(`The export is incomplete. To continue it, repeat the command with: --cursor ${cursor}`);
    throw error;
  }
}

function rangeOf({ from, to, step }: RangeOptions): URLSearchParams {
  return new URLSearchParams({ step, ...(from && { from }), ...(to && { to }) });
}

function timeOf(start: z.output<typeof USAGE_HISTORY>['points'][number]['start'], { step }: RangeOptions): string {
  const time = shortTime(start) ?? '';
  return step === 'day' ? time.slice(0, 10) : time.slice(0, 16).replace('T', ' ');
}

/** Returns a bar in eighths of a character. `share`: 0 to 1; more than 0 shows at least one eighth. */
function bar(share: number): string {
  const eighths = Math.ceil(share * BAR_WIDTH * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (BAR_PARTS[eighths % 8] ?? '').trim();
}
