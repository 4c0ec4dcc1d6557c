import { CUSTOMER_USAGE, type CustomerUsageDocument, EXPLANATION, USAGE } from '../admin-api/responses.ts';
import { pathOf } from '../admin-client/admin-client.ts';
import type { DestructiveOptions, DocumentOptions } from './admin-options.ts';
import { confirm, requireTerminalOrYes } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printDocument, printList } from './output.ts';
import { type Columns, formatTable, shortTime } from './table.ts';

const COLUMNS: Columns<CustomerUsageDocument> = {
  CUSTOMER: ({ customer }) => customer,
  PLAN: ({ plan }) => plan,
  USED: ({ used }) => used,
  'PER HOUR': ({ limit }) => limit,
  PERCENT: ({ percent }) => percent,
};

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

export async function resetUsage(customer: string, options: DestructiveOptions): Promise<void> {
  requireTerminalOrYes(options);
  const client = await connect(options);
  if (!options.yes) await confirm(`Reset the usage of customer ${customer}?`);
  await client.delete(pathOf`/admin/v1/customers/${customer}/usage`);
  await print(`The usage of customer ${customer} is reset.\n`);
}

export async function explain(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const explanation = await client.get(EXPLANATION, pathOf`/admin/v1/customers/${customer}/explain`);
  if (options.json) return printDocument(explanation, options);

  const { usage, instance, refusals, ...reasons } = explanation;
  const { leases, refuses_for_seconds: refuses } = instance;
  await printDocument(
    {
      ...reasons,
      used: usage?.used ?? null,
      remaining: usage?.remaining ?? null,
      reset_seconds: usage?.reset_seconds ?? null,
      leases: leases.map(({ units, ends_in_seconds: seconds }) => `${units} for ${seconds} s`).join(', '),
      refuses_for_seconds: refuses,
    },
    options,
  );
  if (refusals.length === 0) return;
  const table = formatTable(refusals, {
    'refused with': ({ code }) => code,
    times: ({ count }) => count,
    first: ({ first_at: at }) => shortTime(at),
    last: ({ last_at: at }) => shortTime(at),
    'last key': ({ key_id: id }) => id,
  });
  await print(`\n${table}`);
}
