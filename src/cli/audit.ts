import { type Command, Option } from '@commander-js/extra-typings';
import type { AuditAction, AuditDocument } from '../admin-api/responses.ts';
import { printableJson } from '../admin-client/printable.ts';
import { documentCommand, integerParser } from './admin-commands.ts';
import { connect } from './connect.ts';
import { print, printList } from './output.ts';
import { type Columns, shortTime } from './table.ts';
import { FROM, TO } from './times.ts';

const COLUMNS: Columns<AuditDocument> = {
  AT: ({ at }) => shortTime(at),
  WHO: 'actor',
  FROM: 'from',
  ACTION: 'action',
  CUSTOMER: 'customer',
  KEY: 'key_id',
  DETAILS: describeDetails,
};

export function addAuditCommand(program: Command): void {
  documentCommand(program, 'audit', 'list who changed what, when and from where, newest first')
    .option(...FROM)
    .option(...TO)
    .option('--limit <number>', 'maximum number of entries', integerParser(1))
    .option('--customer <customer>', 'only entries about this customer')
    .option('--action <action>', 'only entries of this action, such as key.create')
    .addOption(new Option('--jsonl', 'print one JSON object per line, page by page, to export them').conflicts('json'))
    .action(async (options) => {
      const { limit, from, to, customer, action, jsonl } = options;
      const client = await connect(options);
      // The gateway checks the action.
      const query = {
        from,
        to,
        customer: customer || undefined,
        action: (action || undefined) as AuditAction | undefined,
      };
      const wanted = { query, maxItems: limit };
      if (jsonl) {
        for await (const page of client.pages('GET /admin/v1/audit', wanted)) await print(page.map(jsonLine).join(''));
        return;
      }
      await printList('entries', COLUMNS, await client.list('GET /admin/v1/audit', wanted), options);
    });
}

function jsonLine(entry: AuditDocument): string {
  return `${printableJson(entry, 0)}\n`;
}

/** Returns text such as `plan="starter" → "business"`; only the new values where the former ones are unknown. */
function describeDetails({ details, before }: Pick<AuditDocument, 'details' | 'before'>): string {
  const was = (name: string) => (before && name in before ? `${JSON.stringify(before[name])} → ` : '');
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${was(name)}${JSON.stringify(value)}`)
    .join(' ');
}
