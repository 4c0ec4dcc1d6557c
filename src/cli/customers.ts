/** Commands for customers: plans, limits, suspension. */
import type { Command } from '@commander-js/extra-typings';
import type { CustomerDocument } from '../api/admin/responses.ts';
import type { AdminClient } from '../api/client/admin-client.ts';
import { printable } from '../api/client/printable.ts';
import { inNumber } from '../base/in-number.ts';
import {
  adminCommand,
  customerArgument,
  type DocumentOptions,
  destructiveCommand,
  documentCommand,
  importCommand,
  integerParser,
  requireSomeChange,
  unset,
} from './admin-commands.ts';
import { confirm } from './confirm.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { print, printDocument, printList, remark } from './output.ts';
import { type Columns, limitText, shortTime, withTimes } from './table.ts';
import { anchorParser, timeParser } from './times.ts';

const COLUMNS: Columns<CustomerDocument> = {
  CUSTOMER: 'id',
  PLAN: 'plan',
  'PER HOUR': limitText,
  'SET BY': 'limit_source',
  SUSPENDED: 'suspended',
  NAME: 'name',
};

export function addCustomerCommands(program: Command): void {
  const customers = program.command('customers').description('manage customers: plans, limits, suspension');

  documentCommand(customers, 'list', 'list customers, all or filtered')
    .option('--plan <plan>', 'only customers of this plan')
    .option('--suspended', 'only suspended customers')
    .option('--no-suspended', 'only customers that are not suspended')
    .option('--id-prefix <text>', 'only customers whose id starts with this text')
    .option('--search <text>', 'only customers whose id and name contain each word of this text')
    .action(async (options) => {
      const { plan, suspended, idPrefix, search } = options;
      const client = await connect(options);
      const query = {
        plan,
        suspended: suspended === undefined ? undefined : (`${suspended}` as const),
        id_prefix: idPrefix,
        search,
      };
      const found = await client.list('GET /admin/v1/customers', { query });
      if (plan !== undefined && found.length === 0) await requirePlan(client, plan);
      // The store returns them in no useful order.
      const sorted = found.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const isFiltered = Object.values(query).some((value) => value !== undefined);
      await printList(isFiltered ? 'such customers' : 'customers', COLUMNS, sorted, options);
    });

  documentCommand(customers, 'show', 'show a customer and its effective limit')
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      await printCustomer(await client.call('GET /admin/v1/customers/:id', { id: customer }), options);
    });

  withMembers(documentCommand(customers, 'create', 'create a customer'))
    .requiredOption('--plan <plan>', 'a plan of the configuration')
    .action(async (id, options) => {
      const { plan, name, requestsPerHour: requests_per_hour, notifyUrl: notify_url } = options;
      const { periodRequests: period_requests, periodAnchor: period_anchor } = options;
      const limits = { requests_per_hour, period_requests, period_anchor };
      const body = { id, plan, name, ...limits, notify_url, ...membersWithEnd(options) };
      const client = await connect(options);
      await printChanged(await client.call('POST /admin/v1/customers', { body }), options);
    });

  const imported =
    'id, plan, name, requests_per_hour, period_requests, period_anchor, temporary_limit, suspended, suspended_until, notify_url';
  importCommand(customers, 'create many customers from a file of CSV or JSON Lines; safe to repeat', imported).action(
    async (options) => {
      const { importCustomers } = await import('./customers-import.ts');
      await importCustomers(options);
    },
  );

  const resultOfEach = 'print the result of each customer as JSON';
  documentCommand(customers, 'apply', 'make customers as a file says; safe to repeat', resultOfEach)
    .requiredOption('-f, --file <file>', 'YAML with a list "customers", or JSON Lines; - is standard input')
    .option('--dry-run', 'check the file and show what would change')
    .option('--prune', 'delete the customers that the file does not name, with their keys and their usage')
    .option('--yes', 'do not ask for confirmation')
    .action(async (options) => {
      const { applyCustomers } = await import('./customers-apply.ts');
      await applyCustomers(options);
    });

  adminCommand(customers, 'export', 'print all customers as a file for "customers apply"')
    .option('--jsonl', 'print JSON Lines')
    .action(async (options) => {
      const { exportCustomers } = await import('./customers-apply.ts');
      await exportCustomers(options);
    });

  withMembers(documentCommand(customers, 'update', 'change a customer; members without an option stay unchanged'))
    .option('--plan <plan>', 'a plan of the configuration')
    .option('--no-name', 'remove its name')
    .option('--no-requests-per-hour', "remove its own limit, so that the plan's applies")
    .option('--no-period-requests', "remove its own limit of a period, so that the plan's applies")
    .option('--no-period-anchor', 'let its periods begin with those of the calendar')
    .option('--no-temporary-limit', 'remove it')
    .option('--no-suspended', 'accept its requests again')
    .option('--no-notify-url', 'send it no notices')
    .action(async (id, options) => {
      const { plan, name, requestsPerHour, periodRequests, periodAnchor, temporaryLimit, notifyUrl } = options;
      const client = await connect(options);
      const body = {
        plan,
        name: unset(name),
        requests_per_hour: unset(requestsPerHour),
        period_requests: unset(periodRequests),
        period_anchor: unset(periodAnchor),
        notify_url: unset(notifyUrl),
        ...membersWithEnd(await withPresentEnd(client, id, options)),
        ...(temporaryLimit === false && { temporary_limit: null }),
      };
      requireSomeChange(body);
      await printChanged(await client.call('PATCH /admin/v1/customers/:id', { id, body }), options);
    });

  documentCommand(
    customers,
    'notify-secret',
    "make a new secret that signs a customer's notices; the old one stays valid for a day",
  )
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      const created = await client.call('POST /admin/v1/customers/:id/notify-secret', { id: customer });
      if (options.json) return printDocument(created, options);
      const { secret, former_valid_until: until } = created;
      if (until !== null) remark(`Notices are signed with the former secret, too, until ${shortTime(until)}.`);
      remark('The secret is shown only once:');
      await print(`${secret}\n`);
    });

  destructiveCommand(customers, 'delete', 'delete a customer with its keys and its usage')
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      await confirm(options, async () => {
        const keys = await client.list('GET /admin/v1/customers/:id/keys', { id: customer });
        return `Delete customer ${customer} with its usage and its ${inNumber(keys.length, 'key')}?`;
      });
      await client.call('DELETE /admin/v1/customers/:id', { id: customer });
      await print(`Customer ${customer} is deleted, its keys with it.\n`);
    });
}

/** Called if no customer is on the plan: records may have a plan that is not configured. @throws Error */
async function requirePlan(client: AdminClient, plan: string): Promise<void> {
  const { plans } = await client.call('GET /admin/v1/config', {});
  if (Object.hasOwn(plans, plan)) return;
  throw new Error(
    printable(`plan ${plan} is not configured; the configured plans are ${Object.keys(plans).join(', ')}`),
  );
}

/** Adds the customer and the options of what can be set at creation and by a change. */
function withMembers(command: ReturnType<typeof documentCommand>) {
  return command
    .addArgument(customerArgument())
    .option('--name <name>', 'display name of the customer')
    .option('--requests-per-hour <number>', "the customer's own limit, instead of the plan's", integerParser(1))
    .option('--period-requests <number>', "its own limit of a day or month, instead of the plan's", integerParser(1))
    .option(
      '--period-anchor <time>',
      'when its days or months begin: 2030-01-31 or 2030-01-31T10:00:00Z, of which the day of the month and the hour count',
      anchorParser,
    )
    .option('--temporary-limit <number>', 'a limit for a time, instead of all others of its record', integerParser(1))
    .option('--suspended', 'refuse its requests')
    .option(
      '--until <time>',
      'when the temporary limit or the suspension ends: 2030-01-31, 2030-01-31T12:00:00Z or a duration from now, such as 7d',
      timeParser('future'),
    )
    .option('--notify-url <url>', 'where its notices are sent (https)');
}

type LimitOption = number | boolean | undefined;

interface LimitOptions {
  readonly requestsPerHour?: LimitOption;
  readonly temporaryLimit?: LimitOption;
  readonly suspended?: boolean | undefined;
  readonly until?: string | undefined;
}

/**
 * Completes a lone `--until` with the limit or the suspension that it prolongs, and a lone `--temporary-limit` with the end
 * of the limit that it replaces.
 */
async function withPresentEnd<Options extends LimitOptions>(client: AdminClient, id: string, options: Options) {
  const { temporaryLimit: limit, suspended, until } = options;
  const isEndAlone = until !== undefined && limit === undefined && suspended === undefined;
  const isLimitAlone = until === undefined && typeof limit === 'number' && !suspended;
  if (!isEndAlone && !isLimitAlone) return options;
  const { temporary_limit: present, suspended_until } = await client.call('GET /admin/v1/customers/:id', { id });
  if (isLimitAlone) return { ...options, until: present?.until };
  if (present && suspended_until) {
    throw new UsageError(
      `${id} has a temporary limit and a suspension that ends: add --temporary-limit or --suspended`,
    );
  }
  return { ...options, temporaryLimit: present?.requests_per_hour, suspended: suspended_until ? true : undefined };
}

/** Returns the members that may end by themselves, as in the admin API. */
function membersWithEnd({ temporaryLimit: limit, suspended, until }: LimitOptions) {
  const isTemporary = typeof limit === 'number';
  if (isTemporary && until === undefined) throw new UsageError('--temporary-limit needs --until');
  if (until !== undefined && !isTemporary && !suspended) {
    throw new UsageError('--until needs --temporary-limit or --suspended');
  }
  return {
    temporary_limit: isTemporary ? { requests_per_hour: limit, until: until ?? '' } : undefined,
    suspended,
    suspended_until: suspended ? until : undefined,
  };
}

function printCustomer(customer: CustomerDocument, options: DocumentOptions): Promise<void> {
  return printDocument(options.json ? customer : withTimes(customer), options);
}

/** Prints the changed customer, with a remark if an override takes precedence over the limit just set. */
async function printChanged(customer: CustomerDocument, options: DocumentOptions & LimitOptions): Promise<void> {
  await printCustomer(customer, options);
  const setsLimit = [options.requestsPerHour, options.temporaryLimit].some((limit) => typeof limit === 'number');
  if (!setsLimit || customer.limit_source !== 'override') return;
  const { id, limit } = customer;
  remark(
    printable(
      `The limit stays ${limit} requests an hour: an override in the configuration file takes precedence over the limits of the customer. "tollgate explain ${id}" names its line.`,
    ),
  );
}
