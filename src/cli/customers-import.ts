/**
 * Imports customers from a file. The whole file is checked first, also against the gateway's plans; only then are
 * customers created. An existing customer is not changed, so the same file can be imported again.
 */

import { CONFIGURATION, CUSTOMER, type CustomerDocument } from '../admin-api/responses.ts';
import type { AdminClient } from '../admin-client/admin-client.ts';
import { AdminRefusal } from '../admin-client/failures.ts';
import { findCustomer } from './customers.ts';
import { type CustomerLine, planFaults, readCustomersFile } from './customers-file.ts';
import {
  checkFile,
  type Imported,
  type ImportOptions,
  importAll,
  type Outcome,
  readContent,
  requireSuccess,
} from './import.ts';
import { printList, remark } from './output.ts';
import type { Column } from './table.ts';

interface Row {
  readonly line: number;
  readonly outcome: Outcome;
  readonly customer: string;
  readonly plan: string;
  /** Members in which the existing customer differs from the line. */
  readonly differs: readonly string[];
  readonly name: string | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'LINE', cell: ({ line }) => line },
  { title: 'OUTCOME', cell: ({ outcome }) => outcome },
  { title: 'CUSTOMER', cell: ({ customer }) => customer },
  { title: 'PLAN', cell: ({ plan }) => plan },
  { title: 'DIFFERS IN', cell: ({ differs }) => differs.join(', ') },
  { title: 'NAME', cell: ({ name }) => name },
];

/** Imports the file. Rejects with a line `file:line: what is wrong` for each fault. */
export async function importCustomers(options: ImportOptions): Promise<void> {
  const { file, dryRun } = options;
  const read = readCustomersFile(await readContent(file));
  const client = await checkFile(options, read, async (client, lines) =>
    planFaults(lines, await client.get(CONFIGURATION, '/admin/v1/config')),
  );
  const report = await importAll(read.items, (line) => (dryRun ? tryOne : importOne)(client, line));
  await printList('customers in the file', COLUMNS, rows(read.items, report.results), options);
  if (report.results.some(({ outcome }) => outcome === 'differs')) {
    remark('Customers that differ were left as they are. "tollgate customers update" changes them.');
  }
  if (dryRun) remark('Nothing was imported.');
  requireSuccess(options, report);
}

async function importOne(client: AdminClient, line: CustomerLine): Promise<Imported> {
  const { line: _, ...body } = line;
  try {
    await client.post(CUSTOMER, '/admin/v1/customers', body);
    return { outcome: 'imported' };
  } catch (error) {
    const exists = error instanceof AdminRefusal && error.problem.status === 409;
    const customer = exists ? await findCustomer(client, line.id) : undefined;
    if (customer === undefined) throw error;
    return compared(customer, line);
  }
}

async function tryOne(client: AdminClient, line: CustomerLine): Promise<Imported> {
  const customer = await findCustomer(client, line.id);
  return customer === undefined ? { outcome: 'would be imported' } : compared(customer, line);
}

function compared(customer: CustomerDocument, line: CustomerLine): Imported {
  const differs = differences(customer, line);
  return differs.length === 0 ? { outcome: 'already there' } : { outcome: 'differs', differs };
}

/** Compares only the members that the line has. */
function differences(customer: CustomerDocument, { plan, name, requests_per_hour: own }: CustomerLine): string[] {
  const isOnPlan = plan === customer.plan || plan === customer.current_plan;
  return [
    ...(isOnPlan ? [] : ['plan']),
    ...(name === undefined || name === customer.name ? [] : ['name']),
    ...(own === undefined || own === customer.requests_per_hour ? [] : ['requests_per_hour']),
  ];
}

function rows(lines: readonly CustomerLine[], results: readonly Imported[]): Row[] {
  return lines.map(({ line, id, plan, name }, index) => {
    const { outcome = 'not tried', differs = [] } = results[index] ?? {};
    return { line, outcome, customer: id, plan, differs, name: name ?? null };
  });
}
