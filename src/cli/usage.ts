import { CUSTOMER_USAGE, type CustomerUsageDocument, USAGE } from '../admin-api/responses.ts';
import { pathOf } from '../admin-client/admin-client.ts';
import type { DocumentOptions, EndingOptions } from './admin-options.ts';
import { confirm, requireSomebodyToAsk } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printDocument, printList } from './output.ts';
import type { Column } from './table.ts';

const COLUMNS: readonly Column<CustomerUsageDocument>[] = [
  { title: 'CUSTOMER', cell: ({ customer }) => customer },
  { title: 'PLAN', cell: ({ plan }) => plan },
  { title: 'USED', cell: ({ used }) => used },
  { title: 'PER HOUR', cell: ({ limit }) => limit },
  { title: 'PERCENT', cell: ({ percent }) => percent },
];

export async function listUsage(options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const customers = new Map<string, CustomerUsageDocument>();
  for await (const page of client.pages(CUSTOMER_USAGE, '/admin/v1/usage')) {
    for (const usage of page) customers.set(usage.customer, usage);
  }
  await printList('customers', COLUMNS, [...customers.values()], options);
}

export async function showUsage(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  await printDocument(await client.get(USAGE, pathOf`/admin/v1/customers/${customer}/usage`), options);
}

export async function resetUsage(customer: string, options: EndingOptions): Promise<void> {
  requireSomebodyToAsk(options);
  const client = await connect(options);
  if (!options.yes) await confirm(`Reset the usage of customer ${customer}?`);
  await client.delete(pathOf`/admin/v1/customers/${customer}/usage`);
  await print(`The usage of customer ${customer} is reset.\n`);
}
