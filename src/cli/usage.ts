/** Commands for the usage of the last hour, and for what limits it. */
import type { Command } from '@commander-js/extra-typings';
import type { CustomerUsageDocument } from '../admin-api/responses.ts';
import { printable } from '../admin-client/printable.ts';
import { customerArgument, destructiveCommand, documentCommand } from './admin-commands.ts';
import { confirm } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printDocument, printJson, printList, printSections } from './output.ts';
import { type Columns, formatDocument, formatTable, withTimes } from './table.ts';
import { addHistoryCommands } from './usage-history.ts';

const COLUMNS: Columns<CustomerUsageDocument> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  USED: 'used',
  'PER HOUR': 'limit',
  PERCENT: 'percent',
};

export function addUsageCommands(program: Command): void {
  const usage = program.command('usage').description('show usage, now and in the past, and reset it');

  documentCommand(usage, 'list', 'list what each customer used of its limit, in the order of the store').action(
    async (options) => {
      const client = await connect(options);
      await printList('customers', COLUMNS, await client.list('GET /admin/v1/usage'), options);
    },
  );

  documentCommand(usage, 'show', "show a customer's usage of the last hour")
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      await printDocument(await client.call('GET /admin/v1/customers/:id/usage', { id: customer }), options);
    });

  destructiveCommand(usage, 'reset', "reset a customer's usage, so that its whole quota is available again")
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      await confirm(options, () => `Reset the usage of customer ${customer}?`);
      await client.call('DELETE /admin/v1/customers/:id/usage', { id: customer });
      await print(`The usage of customer ${customer} is reset.\n`);
    });

  addHistoryCommands(usage);
}

export function addExplainCommand(program: Command): void {
  documentCommand(program, 'explain', "show a customer's effective limit, and the config line or record that sets it")
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      const explanation = await client.call('GET /admin/v1/customers/:id/explain', { id: customer });
      if (options.json) return printJson(explanation);
      const { usage, instance, refusals, verdict, admitted: _, ...reasons } = explanation;
      const { used = null, remaining = null, reset_seconds = null } = usage ?? {};
      const { refuses_for_seconds } = instance;
      const leases = instance.leases
        .map(({ units, ends_in_seconds: seconds }) => `${units} for ${seconds} s`)
        .join(', ');
      const columns = {
        'refused with': 'code',
        times: 'count',
        first: 'first_at',
        last: 'last_at',
        'last key': 'key_id',
      } as const;
      await printSections(
        `${printable(verdict)}\n`,
        formatDocument({ ...withTimes(reasons), used, remaining, reset_seconds, leases, refuses_for_seconds }),
        formatTable(refusals, columns),
      );
    });
}
