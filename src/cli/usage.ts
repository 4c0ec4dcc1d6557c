/** Commands for the usage of the last hour, and for what limits it. */
import type { Command } from '@commander-js/extra-typings';
import type { CustomerUsageDocument } from '../admin-api/responses.ts';
import { customerArgument, destructiveCommand, documentCommand } from './admin-commands.ts';
import { confirm, requireTerminalOrYes } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printDocument, printList } from './output.ts';
import { type Columns, formatTable, shortTime } from './table.ts';
import { addHistoryCommands } from './usage-history.ts';

const COLUMNS: Columns<CustomerUsageDocument> = {
  CUSTOMER: ({ customer }) => customer,
  PLAN: ({ plan }) => plan,
  USED: ({ used }) => used,
  'PER HOUR': ({ limit }) => limit,
  PERCENT: ({ percent }) => percent,
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
      requireTerminalOrYes(options);
      const client = await connect(options);
      if (!options.yes) await confirm(`Reset the usage of customer ${customer}?`);
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
    });
}
