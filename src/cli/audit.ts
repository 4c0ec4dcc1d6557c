import { type Command, Option } from '@commander-js/extra-typings';
import { AUDIT_ENTRY, type AuditDocument } from '../admin-api/responses.ts';
import { printableJson } from '../admin-client/printable.ts';
import { documentCommand, integerParser } from './admin-commands.ts';
import { connect } from './connect.ts';
import { print, printList } from './output.ts';
import { type Columns, shortTime } from './table.ts';
import { FROM, TO } from './times.ts';

const PATH = '/admin/v1/audit';

const COLUMNS: Columns<AuditDocument> = {
  AT: ({ at }) => shortTime(at),
  WHO: ({ actor }) => actor,
  FROM: ({ from }) => from,
  ACTION: ({ action }) => action,
  CUSTOMER: ({ customer }) => customer,
  KEY: ({ key_id }) => key_id,
  DETAILS: ({ details }) => describeDetails(details),
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
      const wanted = {
        query: { ...(from && { from }), ...(to && { to }), ...(customer && { customer }), ...(action && { action }) },
        ...(limit !== undefined && { maxItems: limit }),
      };
      if (jsonl) {
        for await (const page of client.pages(AUDIT_ENTRY, PATH, wanted)) await print(page.map(jsonLine).join(''));
        return;
      }
      await printList('entries', COLUMNS, await client.list(AUDIT_ENTRY, PATH, wanted), options);
    });
}

function jsonLine(entry: AuditDocument): string {
  return `${printableJson(entry, 0)}\n`;
}

function describeDetails(details: AuditDocument['details']): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(' ');
}
