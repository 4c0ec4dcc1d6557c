import { AUDIT_ENTRY, type AuditDocument } from '../admin-api/responses.ts';
import { printableJson } from '../admin-client/printable.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { print, printList } from './output.ts';
import { type Columns, shortTime } from './table.ts';

export interface AuditOptions extends DocumentOptions {
  readonly limit?: number;
  /** ISO 8601. */
  readonly from?: string;
  readonly to?: string;
  readonly customer?: string;
  readonly action?: string;
  readonly jsonl?: true;
}

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

export async function showAudit(options: AuditOptions): Promise<void> {
  const { limit, from, to, customer, action, jsonl } = options;
  const client = await connect(options);
  const wanted = {
    query: { ...(from && { from }), ...(to && { to }), ...(customer && { customer }), ...(action && { action }) },
    ...(limit !== undefined && { maxItems: limit }),
  };
  if (jsonl) {
    for await (const entries of client.pages(AUDIT_ENTRY, PATH, wanted)) await print(entries.map(jsonLine).join(''));
    return;
  }
  const entries = await client.list(AUDIT_ENTRY, PATH, wanted);
  await printList('entries', COLUMNS, entries, options);
}

function jsonLine(entry: AuditDocument): string {
  return `${printableJson(entry, 0)}\n`;
}

function describeDetails(details: AuditDocument['details']): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(' ');
}
