/** Commands for notices to webhooks that are not delivered yet. */
import { NOTICE, type NoticeDocument } from '../admin-api/responses.ts';
import { pathOf } from '../admin-client/admin-client.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { printJson, printList, remark } from './output.ts';
import { type Columns, shortTime } from './table.ts';

export interface NoticeListOptions extends DocumentOptions {
  readonly state?: string;
}

type Row = Omit<NoticeDocument, 'deliveries'> & Partial<NoticeDocument['deliveries'][number]>;

const COLUMNS: Columns<Row> = {
  ID: ({ id }) => id,
  TYPE: ({ type }) => type,
  CUSTOMER: ({ customer }) => customer,
  CREATED: ({ created_at: at }) => shortTime(at),
  ENDPOINT: ({ endpoint }) => endpoint,
  STATE: ({ state = 'pending' }) => state,
  ATTEMPTS: ({ attempts = 0 }) => attempts,
  NEXT: ({ next_attempt_at: at }) => shortTime(at ?? null),
  'LAST ERROR': ({ last_error: error }) => error,
};

export async function listNotices(options: NoticeListOptions): Promise<void> {
  const client = await connect(options);
  const { state } = options;
  const notices = await client.list(NOTICE, '/admin/v1/notices', { query: { ...(state && { state }) } });
  if (options.json) return printJson({ items: notices, next_cursor: null });
  await printList('notices', COLUMNS, notices.flatMap(rowsOf), options);
}

export async function retryNotice(id: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const notice = await client.post(NOTICE, pathOf`/admin/v1/notices/${id}/retry`, {});
  if (options.json) return printJson(notice);
  remark(`The notice ${notice.id} of ${notice.customer} is sent again now.`);
}

/** One row for each delivery; one for a notice that was not attempted yet. */
function rowsOf({ deliveries, ...notice }: NoticeDocument): Row[] {
  return deliveries.length === 0 ? [notice] : deliveries.map((delivery) => ({ ...notice, ...delivery }));
}
