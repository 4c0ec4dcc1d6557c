import type { Command } from 'commander';
import {
  addAdminOptions,
  customerArgument,
  type DocumentOptions,
  type EndingOptions,
  integerParser,
  jsonOption,
  yesOption,
} from './admin-options.ts';
import type { CustomerListOptions, NewCustomerOptions, UpdateCustomerOptions } from './customers.ts';
import type { ImportOptions } from './import.ts';

const load = () => import('./customers.ts');

export function addCustomerCommands(program: Command): void {
  const customers = program.command('customers').description('customers: their plans, limits and suspension');

  customers
    .command('list')
    .description('list all customers, or some of them')
    .option('--plan <plan>', 'those of this plan')
    .option('--suspended', 'those that are suspended')
    .option('--no-suspended', 'those that are not')
    .option('--id-prefix <text>', 'those whose id begins so')
    .addOption(jsonOption())
    .action(async (options: CustomerListOptions) => (await load()).listCustomers(options));

  customers
    .command('show')
    .description('show one customer and the limit that holds for it')
    .addArgument(customerArgument())
    .addOption(jsonOption())
    .action(async (customer: string, options: DocumentOptions) => (await load()).showCustomer(customer, options));

  customers
    .command('create')
    .description('create a customer')
    .addArgument(customerArgument())
    .requiredOption('--plan <plan>', 'a plan of the configuration')
    .option('--name <name>', 'what people call the customer')
    .option('--requests-per-hour <number>', "its own limit instead of the plan's", integerParser(1))
    .addOption(jsonOption())
    .action(async (customer: string, options: NewCustomerOptions) => (await load()).createCustomer(customer, options));

  customers
    .command('import')
    .description('create many customers from a file of CSV or JSON Lines; safe to repeat')
    .requiredOption('--file <file>', 'id, plan, name, requests_per_hour in each line; - is standard input')
    .option('--dry-run', 'check every line and import nothing')
    .addOption(jsonOption('print what became of each line as JSON'))
    .action(async (options: ImportOptions) => (await import('./customers-import.ts')).importCustomers(options));

  customers
    .command('update')
    .description('change a customer; what is not named stays as it is')
    .addArgument(customerArgument())
    .option('--plan <plan>', 'a plan of the configuration')
    .option('--name <name>', 'what people call the customer')
    .option('--no-name', 'take its name away')
    .option('--requests-per-hour <number>', "its own limit instead of the plan's", integerParser(1))
    .option('--no-requests-per-hour', "take its own limit away, so that the plan's holds")
    .option('--suspended', 'refuse its requests from now on')
    .option('--no-suspended', 'let its requests pass again')
    .addOption(jsonOption())
    .action(async (customer: string, options: UpdateCustomerOptions) =>
      (await load()).updateCustomer(customer, options),
    );

  customers
    .command('delete')
    .description('delete a customer with its keys and its usage')
    .addArgument(customerArgument())
    .addOption(yesOption())
    .action(async (customer: string, options: EndingOptions) => (await load()).deleteCustomer(customer, options));

  for (const command of customers.commands) addAdminOptions(command);
}
