/** Commands that find requests that were refused or failed. */
import type { Command } from '@commander-js/extra-typings';
import type { FailedRequestDocument } from '../api/admin/responses.ts';
import { documentCommand, integerParser, parseCustomerId } from './admin-commands.ts';
import { connect } from './connect.ts';
import { printJson, printList, printSections } from './output.ts';
import { type Columns, formatDocument, shortTime } from './table.ts';

const COLUMNS: Columns<FailedRequestDocument> = {
  AT: ({ at }) => shortTime(at),
  STATUS: 'status',
  CODE: ({ code, failure }) => code ?? failure,
  SOURCE: 'source',
  CUSTOMER: 'customer',
  KEY: 'key_id',
  METHOD: 'method',
  ROUTE: 'route',
  CLIENT: 'client',
  REQUEST: 'request_id',
};

export function addRequestCommands(program: Command): void {
  const requests = program.command('requests').description('find requests that were refused or failed');

  documentCommand(requests, 'show', 'show the refused or failed requests with this request_id, newest first')
    .argument('<request_id>', 'of the problem document, or of the header X-Request-Id')
    .action(async (requestId, options) => {
      const client = await connect(options);
      const found = await client.call('GET /admin/v1/requests/:requestId', { requestId });
      if (options.json) return printJson(found);
      await printSections(...found.items.map(formatDocument));
    });

  documentCommand(requests, 'list', 'list requests that were refused or failed, newest first')
    .option('--customer <customer>', 'only requests of this customer', parseCustomerId)
    .option('--code <code>', 'only requests with this code, such as quota_exceeded')
    .option('--limit <number>', 'maximum number of requests', integerParser(1), 100)
    .action(async ({ customer, code, limit, ...options }) => {
      const client = await connect(options);
      const query = { customer, code: code || undefined };
      // Not `list`, which drops what is the same customer's: these have no id, and do not move between pages.
      const found: FailedRequestDocument[] = [];
      for await (const page of client.pages('GET /admin/v1/requests', { query, maxItems: limit })) found.push(...page);
      await printList('refused or failed requests', COLUMNS, found, options);
    });
}
