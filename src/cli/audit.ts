import { type Command, Option } from '@commander-js/extra-typings';
import { type AuditRow, auditRowsOf } from '../api/admin/audit-rows.ts';
import type { AuditAction, AuditDocument } from '../api/admin/responses.ts';
import { printableJson } from '../api/client/printable.ts';
import { documentCommand, integerParser } from './admin-commands.ts';
import { connect } from './connect.ts';
import { print, printJson, printList } from './output.ts';
import { type Columns, shortTime } from './table.ts';
import { FROM, TO } from './times.ts';

const COLUMNS: Columns<AuditRow> = {
  AT: ({ at }) => shortTime(at),
  WHO: 'actor',
  FROM: 'from',
  ACTION: ({ action, entries: { length } }) => (length > 1 ? `${length} × ${action}` : action),
  CUSTOMER: 'customer',
  KEY: 'key_id',
  DETAILS: describeDetails,
};

export function addAuditCommand(program: Command): void {
  documentCommand(program, 'audit', 'list who changed what, when and from where, newest first; an import is one line')
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
      const entries = await client.list('GET /admin/v1/audit', wanted);
      if (options.json) return printJson({ items: entries, next_cursor: null });
      await printList('entries', COLUMNS, auditRowsOf(entries), options);
    });
}

function jsonLine(entry: AuditDocument): string {
  return `${printableJson(entry, 0)}\n`;
}

/** Returns text such as `plan="starter" → "business"`; only the new values where the former ones are unknown. */
function describeDetails({ details, before, entries }: AuditRow): string {
  if (entries.length > 1) return `since ${shortTime(entries.at(-1)?.at ?? '')}`;
  const was = (name: string) => (before && name in before ? `${JSON.stringify(before[name])} → ` : '');
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${was(name)}${JSON.stringify(value)}`)
    .join(' ');
}
