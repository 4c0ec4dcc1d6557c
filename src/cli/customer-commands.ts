import type { Command } from 'commander';
import {
  customerArgument,
  type DestructiveOptions,
  type DocumentOptions,
  destructiveCommand,
  documentCommand,
  integerParser,
} from './admin-options.ts';
import type { CustomerListOptions, NewCustomerOptions, UpdateCustomerOptions } from './customers.ts';
import type { ImportOptions } from './import.ts';

const load = () => import('./customers.ts');

export function addCustomerCommands(program: Command): void {
  const customers = program.command('customers').description('manage customers: plans, limits, suspension');

  documentCommand(customers, 'list', 'list customers, all or filtered')
    .option('--plan <plan>', 'only customers of this plan')
    .option('--suspended', 'only suspended customers')
    .option('--no-suspended', 'only customers that are not suspended')
    .option('--id-prefix <text>', 'only customers whose id starts with this text')
    .option('--search <text>', 'only customers whose id, or a word of whose name, starts with this text')
    .action(async (options: CustomerListOptions) => (await load()).listCustomers(options));

  documentCommand(customers, 'show', 'show a customer and its effective limit')
    .addArgument(customerArgument())
    .action(async (customer: string, options: DocumentOptions) => (await load()).showCustomer(customer, options));

  documentCommand(customers, 'create', 'create a customer')
    .addArgument(customerArgument())
    .requiredOption('--plan <plan>', 'a plan of the configuration')
    .option('--name <name>', 'display name of the customer')
    .option('--requests-per-hour <number>', "the customer's own limit, instead of the plan's", integerParser(1))
    .option('--notify-url <url>', 'where its notices are sent (https)')
    .action(async (customer: string, options: NewCustomerOptions) => (await load()).createCustomer(customer, options));

  documentCommand(
    customers,
    'import',
    'create many customers from a file of CSV or JSON Lines; safe to repeat',
    'print the result of each line as JSON',
  )
    .requiredOption('--file <file>', 'id, plan, name, requests_per_hour in each line; - is standard input')
    .option('--dry-run', 'check every line and import nothing')
    .action(async (options: ImportOptions) => (await import('./customers-import.ts')).importCustomers(options));

  documentCommand(customers, 'update', 'change a customer; members without an option stay unchanged')
    .addArgument(customerArgument())
    .option('--plan <plan>', 'a plan of the configuration')
    .option('--name <name>', 'display name of the customer')
    .option('--no-name', 'remove its name')
    .option('--requests-per-hour <number>', "the customer's own limit, instead of the plan's", integerParser(1))
    .option('--no-requests-per-hour', "remove its own limit, so that the plan's applies")
    .option('--suspended', 'refuse its requests')
    .option('--no-suspended', 'accept its requests again')
    .option('--notify-url <url>', 'where its notices are sent (https)')
    .option('--no-notify-url', 'send it no notices')
    .action(async (customer: string, options: UpdateCustomerOptions) =>
      (await load()).updateCustomer(customer, options),
    );

  documentCommand(
    customers,
    'notify-secret',
    "make a new secret that signs a customer's notices; the old one stays valid for a day",
  )
    .addArgument(customerArgument())
    .action(async (customer: string, options: DocumentOptions) => (await load()).createNotifySecret(customer, options));

  destructiveCommand(customers, 'delete', 'delete a customer with its keys and its usage')
    .addArgument(customerArgument())
    .action(async (customer: string, options: DestructiveOptions) => (await load()).deleteCustomer(customer, options));
}
