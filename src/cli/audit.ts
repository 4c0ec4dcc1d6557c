import { AUDIT_ENTRY, type AuditDocument } from '../admin-client/documents.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { printList } from './output.ts';
import { type Column, shortTime } from './table.ts';

export interface AuditOptions extends DocumentOptions {
  readonly limit?: number;
}

const COLUMNS: readonly Column<AuditDocument>[] = [
  { title: 'AT', cell: ({ at }) => shortTime(at) },
  { title: 'WHO', cell: ({ actor }) => actor },
  { title: 'FROM', cell: ({ from }) => from },
  { title: 'ACTION', cell: ({ action }) => action },
  { title: 'CUSTOMER', cell: ({ customer }) => customer },
  { title: 'KEY', cell: ({ key_id }) => key_id },
  { title: 'DETAILS', cell: ({ details }) => describeDetails(details) },
];

export async function showAudit(options: AuditOptions): Promise<void> {
  const client = await connect(options);
  const most = options.limit === undefined ? {} : { most: options.limit };
  const entries = await client.list(AUDIT_ENTRY, '/admin/v1/audit', most);
  await printList('entries', COLUMNS, entries, options);
}

function describeDetails(details: AuditDocument['details']): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(' ');
}
