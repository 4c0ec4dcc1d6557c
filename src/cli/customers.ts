import { CUSTOMER, type CustomerDocument, KEY, NOTIFY_SECRET } from '../admin-api/responses.ts';
import { type AdminClient, pathOf } from '../admin-client/admin-client.ts';
import { AdminRefusal } from '../admin-client/failures.ts';
import { printable } from '../admin-client/printable.ts';
import {
  type DestructiveOptions,
  type DocumentOptions,
  requireSomeChange,
  type Unsettable,
  unset,
} from './admin-options.ts';
import { confirm, requireTerminalOrYes } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printDocument, printList, remark } from './output.ts';
import type { Columns } from './table.ts';
import { shortTime } from './table.ts';

const CUSTOMERS = '/admin/v1/customers';

const COLUMNS: Columns<CustomerDocument> = {
  CUSTOMER: ({ id }) => id,
  PLAN: ({ plan }) => plan,
  'PER HOUR': ({ limit }) => limit,
  'SET BY': ({ limit_source }) => limit_source,
  SUSPENDED: ({ suspended }) => suspended,
  NAME: ({ name }) => name,
};

export interface CustomerListOptions extends DocumentOptions {
  readonly plan?: string;
  readonly suspended?: boolean;
  readonly idPrefix?: string;
  readonly search?: string;
}

export async function listCustomers(options: CustomerListOptions): Promise<void> {
  const { plan, suspended, idPrefix, search } = options;
  const client = await connect(options);
  const query = {
    ...(plan !== undefined && { plan }),
    ...(suspended !== undefined && { suspended: String(suspended) }),
    ...(idPrefix !== undefined && { id_prefix: idPrefix }),
    ...(search !== undefined && { search }),
  };
  const customers = await client.list(CUSTOMER, CUSTOMERS, { query });
  // A customer may be on two pages, and the store returns them in no useful order.
  const distinct = [...new Map(customers.map((customer) => [customer.id, customer])).values()];
  const sorted = distinct.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  await printList(Object.keys(query).length > 0 ? 'such customers' : 'customers', COLUMNS, sorted, options);
}

export async function showCustomer(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  await printDocument(await client.get(CUSTOMER, pathOf`/admin/v1/customers/${customer}`), options);
}

/** Returns the customer; undefined if it does not exist. */
export async function findCustomer(client: AdminClient, customer: string): Promise<CustomerDocument | undefined> {
  try {
    return await client.get(CUSTOMER, pathOf`/admin/v1/customers/${customer}`);
  } catch (error) {
    if (error instanceof AdminRefusal && error.problem.status === 404) return undefined;
    throw error;
  }
}

export interface NewCustomerOptions extends DocumentOptions {
  readonly plan: string;
  readonly name?: string;
  readonly requestsPerHour?: number;
  readonly notifyUrl?: string;
}

export async function createCustomer(customer: string, options: NewCustomerOptions): Promise<void> {
  const { plan, name, requestsPerHour, notifyUrl } = options;
  const client = await connect(options);
  const body = { id: customer, plan, name, requests_per_hour: requestsPerHour, notify_url: notifyUrl };
  await printChanged(await client.post(CUSTOMER, CUSTOMERS, body), options);
}

export interface UpdateCustomerOptions extends DocumentOptions {
  readonly plan?: string;
  readonly name?: Unsettable<string>;
  readonly requestsPerHour?: Unsettable<number>;
  readonly suspended?: boolean;
  readonly notifyUrl?: Unsettable<string>;
}

export async function updateCustomer(customer: string, options: UpdateCustomerOptions): Promise<void> {
  const { plan, name, requestsPerHour, suspended, notifyUrl } = options;
  const change = {
    plan,
    name: unset(name),
    requests_per_hour: unset(requestsPerHour),
    suspended,
    notify_url: unset(notifyUrl),
  };
  requireSomeChange(change);
  const client = await connect(options);
  await printChanged(await client.patch(CUSTOMER, pathOf`/admin/v1/customers/${customer}`, change), options);
}

/** Prints the changed customer, with a remark if an override takes precedence over the limit just set. */
async function printChanged(
  customer: CustomerDocument,
  options: DocumentOptions & { readonly requestsPerHour?: Unsettable<number> },
): Promise<void> {
  await printDocument(customer, options);
  if (typeof options.requestsPerHour !== 'number' || customer.limit_source !== 'override') return;
  const { id, limit } = customer;
  remark(
    printable(
      `The limit stays ${limit} requests an hour: an override in the configuration file takes precedence over the customer's own number. "tollgate explain ${id}" names its line.`,
    ),
  );
}

/** Prints the new secret on standard output, and what to do with it as remarks. */
export async function createNotifySecret(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  const created = await client.post(NOTIFY_SECRET, pathOf`/admin/v1/customers/${customer}/notify-secret`, {});
  if (options.json) return printDocument(created, options);
  const { secret, former_valid_until: until } = created;
  if (until !== null) remark(`Notices are signed with the former secret, too, until ${shortTime(until)}.`);
  remark('The secret is shown only once:');
  await print(`${secret}\n`);
}

export async function deleteCustomer(customer: string, options: DestructiveOptions): Promise<void> {
  requireTerminalOrYes(options);
  const client = await connect(options);
  if (!options.yes) {
    const keys = await client.list(KEY, pathOf`/admin/v1/customers/${customer}/keys`);
    const count = keys.length === 1 ? '1 key' : `${keys.length} keys`;
    await confirm(`Delete customer ${customer} with its usage and its ${count}?`);
  }
  await client.delete(pathOf`/admin/v1/customers/${customer}`);
  await print(`Customer ${customer} is deleted, its keys with it.\n`);
}
