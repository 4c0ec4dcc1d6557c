/** Commands for notices to webhooks that are not delivered yet. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { NoticeDocument } from '../api/admin/responses.ts';
import { documentCommand, parseCustomerId } from './admin-commands.ts';
import { connect } from './connect.ts';
import { EXIT } from './exit-status.ts';
import { print, printJson, printList, remark } from './output.ts';
import { type Columns, formatTable } from './table.ts';

type Row = Omit<NoticeDocument, 'deliveries'> & Partial<NoticeDocument['deliveries'][number]>;

const COLUMNS: Columns<Row> = {
  ID: 'id',
  TYPE: 'type',
  CUSTOMER: 'customer',
  CREATED: 'created_at',
  ENDPOINT: 'endpoint',
  STATE: ({ state = 'pending' }) => state,
  ATTEMPTS: ({ attempts = 0 }) => attempts,
  NEXT: 'next_attempt_at',
  'LAST ERROR': 'last_error',
};

/** `finish`: called with an exit status other than success. */
export function addNoticeCommands(program: Command, finish: (status: number) => void): void {
  const notices = program
    .command('notices')
    .description('list webhook notices that are not delivered, retry them, and test endpoints');

  documentCommand(notices, 'list', 'list notices that are not delivered yet, oldest first')
    .addOption(new Option('--state <state>', 'only pending or dead ones').choices(['pending', 'dead'] as const))
    .action(async (options) => {
      const { state, json } = options;
      const client = await connect(options);
      const found = await client.list('GET /admin/v1/notices', { query: { state } });
      if (json) return printJson({ items: found, next_cursor: null });
      await printList('notices', COLUMNS, found.flatMap(rowsOf), options);
    });

  documentCommand(notices, 'test', 'send a test notice to the endpoints of the configuration, or to a customer')
    .option('--customer <customer>', 'only to the notify_url of this customer', parseCustomerId)
    .action(async ({ customer, ...options }) => {
      const client = await connect(options);
      const tested = await client.call('POST /admin/v1/notices/test', { query: { customer } });
      if (tested.results.some(({ result }) => result !== 'delivered')) finish(EXIT.failure);
      if (options.json) return printJson(tested);
      const columns = { ENDPOINT: 'endpoint', RESULT: 'result', REASON: 'reason' } as const;
      await print(formatTable(tested.results, columns));
    });

  documentCommand(notices, 'retry', 'send a notice again to the endpoints that do not have it')
    .argument('<notice_id>', 'the id of the notice')
    .action(async (id, options) => {
      const client = await connect(options);
      const notice = await client.call('POST /admin/v1/notices/:id/retry', { id });
      if (options.json) return printJson(notice);
      remark(`The notice ${notice.id} of ${notice.customer} is sent again now.`);
    });
}

/** One row for each delivery; one for a notice that was not attempted yet. */
function rowsOf({ deliveries, ...notice }: NoticeDocument): Row[] {
  return deliveries.length === 0 ? [notice] : deliveries.map((delivery) => ({ ...notice, ...delivery }));
}
