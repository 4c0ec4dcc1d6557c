/** Commands for usage, now and in the past, and for what limits it. */
import { type Command, Option } from '@commander-js/extra-typings';
import { EXPORT_FORMATS } from '../api/admin/allowed-values.ts';
import type {
  ClosedPeriodDocument,
  CustomerUsageDocument,
  DeprecatedCallsDocument,
  NearCustomerDocument,
  RefusedCustomerDocument,
} from '../api/admin/responses.ts';
import type { ExportPage } from '../api/client/admin-client.ts';
import { printable } from '../api/client/printable.ts';
import {
  adminCommand,
  customerArgument,
  destructiveCommand,
  documentCommand,
  integerParser,
} from './admin-commands.ts';
import { confirm } from './confirm.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { print, printDocument, printJson, printList, printSections, remark } from './output.ts';
import { type Columns, formatDocument, formatTable, periodUsageText, shortTime, withTimes } from './table.ts';
import { FROM, TIME_FORMS, TO, timeParser } from './times.ts';

const BAR_WIDTH = 40;
const BAR_PARTS = ' ▏▎▍▌▋▊▉█';
/** Customers in one response. A response is printed when it is complete, so it must fit into memory. */
const EXPORT_CUSTOMERS = '100';
const EXPORT_PERIODS = '1000';

const NEAR_COLUMNS: Columns<NearCustomerDocument> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  WINDOW: 'window',
  USED: 'used',
  LIMIT: 'limit',
  PERCENT: 'percent',
  'MORE IN SECONDS': 'reset_seconds',
};

const REFUSED_COLUMNS: Columns<RefusedCustomerDocument> = {
  CUSTOMER: 'customer',
  'REFUSED WITH': 'code',
  TIMES: 'count',
  FIRST: 'first_at',
  LAST: 'last_at',
  'LAST KEY': 'key_id',
};

const DEPRECATED_COLUMNS: Columns<DeprecatedCallsDocument> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  ROUTE: 'route',
  CALLS: 'count',
  'REFUSED (410)': 'gone',
  LAST: 'last_at',
  NAME: 'customer_name',
};

const COLUMNS: Columns<CustomerUsageDocument> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  USED: 'used',
  'PER HOUR': 'limit',
  PERCENT: 'percent',
  'DAY OR MONTH': ({ period }) => period && `${period.used} of ${period.limit} per ${period.per}`,
};

const PERIOD_COLUMNS: Columns<ClosedPeriodDocument> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  'STARTS AT': 'starts_at',
  'ENDS AT': 'ends_at',
  INCLUDED: 'included',
  USED: 'used',
  OVERAGE: 'overage',
};

export function addUsageCommands(program: Command): void {
  const usage = program.command('usage').description('show usage, now and in the past, and reset it');

  documentCommand(usage, 'list', 'list what each customer used of its limit, highest use first').action(
    async (options) => {
      const client = await connect(options);
      const usages = await client.list('GET /admin/v1/usage');
      const sorted = usages.toSorted((a, b) => b.used - a.used || (a.customer < b.customer ? -1 : 1));
      await printList('customers', COLUMNS, sorted, options);
    },
  );

  documentCommand(usage, 'show', "show a customer's usage of the last hour")
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      const { period, ...usage } = await client.call('GET /admin/v1/customers/:id/usage', { id: customer });
      await printDocument({ ...usage, period: options.json ? period : periodUsageText(period) }, options);
    });

  destructiveCommand(usage, 'reset', "reset a customer's usage, so that its whole quota is available again")
    .addArgument(customerArgument())
    .addOption(
      new Option('--window <window>', 'what is reset').choices(['hour', 'period'] as const).default('hour' as const),
    )
    .action(async (customer, { window, ...options }) => {
      const client = await connect(options);
      const what = window === 'hour' ? 'usage' : 'usage of the present day or month';
      await confirm(options, () => `Reset the ${what} of customer ${customer}?`);
      await client.call('DELETE /admin/v1/customers/:id/usage', { id: customer, query: { window } });
      await print(`The ${what} of customer ${customer} is reset.\n`);
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
      const { usage, instance, refusals, verdict, admitted: _, refusing_keys: keys, ...reasons } = explanation;
      const { used = null, remaining = null, reset_seconds = null, period = null } = usage ?? {};
      const { refuses_for_seconds } = instance;
      const period_usage = periodUsageText(period);
      const leases = instance.leases
        .map(({ units, ends_in_seconds: seconds }) => `${units} for ${seconds} s`)
        .join(', ');
      const refusing_keys = keys
        .map(({ key_id: id, limit, reset_seconds: seconds }) =>
          limit === null ? `${id} (limit unreadable)` : `${id} (all ${limit} used, more in ${seconds} s)`,
        )
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
        formatDocument({
          ...withTimes(reasons),
          used,
          remaining,
          reset_seconds,
          period_usage,
          leases,
          refuses_for_seconds,
          refusing_keys,
        }),
        formatTable(refusals, columns),
      );
    });
}

function addHistoryCommands(usage: Command): void {
  documentCommand(usage, 'history', 'show what a customer used, by hour or day')
    .option(...FROM)
    .option(...TO)
    .addArgument(customerArgument())
    .addOption(stepOption())
    .action(async (id, { from, to, step, ...options }) => {
      const client = await connect(options);
      const query = { step, from, to };
      const history = await client.call('GET /admin/v1/customers/:id/usage/history', { id, query });
      if (options.json) return printJson(history);
      const most = Math.max(1, ...history.points.map(({ units }) => units));
      const columns: Columns<(typeof history.points)[number]> = {
        ...startColumn(step),
        REQUESTS: 'requests',
        UNITS: 'units',
        REFUSED: 'refused',
        '': ({ units, open }) => `${bar(units / most)}${open ? ' (not over)' : ''}`,
      };
      await print(formatTable(history.points, columns));
    });

  documentCommand(usage, 'totals', 'show requests, refusals and upstream errors of each plan')
    .option(...FROM)
    .option(...TO)
    .addOption(stepOption())
    .action(async ({ from, to, step, ...options }) => {
      const client = await connect(options);
      const totals = await client.call('GET /admin/v1/usage/history', { query: { step, from, to } });
      if (options.json) return printJson(totals);
      const rows = totals.points.flatMap(({ start, plans }) =>
        Object.entries(plans).map(([plan, counts]) => ({ start, plan, ...counts })),
      );
      if (rows.length === 0) return remark('Nothing was counted in this time.');
      const columns: Columns<(typeof rows)[number]> = {
        ...startColumn(step),
        PLAN: 'plan',
        REQUESTS: 'requests',
        REFUSED: 'refused',
        'UPSTREAM ERRORS': 'upstream_errors',
      };
      await print(formatTable(rows, columns));
    });

  documentCommand(usage, 'near', 'list the customers nearest to their limits, highest percentage first')
    .option('--above <percent>', 'the lowest percentage of the limit', integerParser(50, 999), 80)
    .action(async (options) => {
      const client = await connect(options);
      const query = { above: String(options.above), limit: '1000' };
      const near = await client.call('GET /admin/v1/usage/near', { query });
      if (options.json) return printJson(near);
      await printList('customers near their limits', NEAR_COLUMNS, near, options);
      remark(
        `As of ${shortTime(new Date().toISOString())}. A customer is listed at most 10 seconds after it came near its limit.`,
      );
    });

  documentCommand(usage, 'refused', 'list the customers that were refused in the last hour, and why').action(
    async (options) => {
      const client = await connect(options);
      const refused = await client.call('GET /admin/v1/usage/refused', { query: { limit: '1000' } });
      if (options.json) return printJson(refused);
      await printList('refused customers', REFUSED_COLUMNS, refused, options);
    },
  );

  documentCommand(usage, 'deprecated', 'list the customers that call routes with a deprecation or a sunset').action(
    async (options) => {
      const client = await connect(options);
      const calls = await client.call('GET /admin/v1/routes/deprecated/customers');
      if (options.json) return printJson(calls);
      await printList('calls of deprecated routes in the last 35 days', DEPRECATED_COLUMNS, calls.items, options);
    },
  );

  adminCommand(usage, 'export', 'print the usage of closed hours, one line per customer and hour')
    .option(...FROM)
    .option(...TO)
    .addOption(formatOption().default('csv' as const))
    .addOption(cursorOption())
    .action(async ({ from, to, format, cursor, ...options }) => {
      const client = await connect(options);
      const query = { format, limit: EXPORT_CUSTOMERS, from, to, cursor: cursor || undefined };
      await printExport(client.exportUsage('GET /admin/v1/usage/export', { query }), query.cursor);
    });

  documentCommand(usage, 'periods', 'show what customers used in days and months that are over, for billing')
    .option('--ended-after <time>', `only periods that ended then or later: ${TIME_FORMS}`, timeParser('past'))
    .option('--ended-before <time>', 'only periods that ended before', timeParser('past'))
    .addOption(formatOption().conflicts('json'))
    .addOption(cursorOption())
    .action(async ({ endedAfter, endedBefore, format, cursor, ...options }) => {
      if (cursor !== undefined && format === undefined) throw new UsageError('--cursor needs --format.');
      const client = await connect(options);
      const range = { ended_after: endedAfter, ended_before: endedBefore, cursor: cursor || undefined };
      if (format === undefined) {
        const periods = await client.list('GET /admin/v1/usage/periods', { query: range });
        return printList('periods that are over', PERIOD_COLUMNS, periods, options);
      }
      const query = { ...range, format, limit: EXPORT_PERIODS };
      await printExport(client.exportUsage('GET /admin/v1/usage/periods', { query }), range.cursor);
    });
}

function formatOption() {
  return new Option('--format <format>', 'format of a line').choices(EXPORT_FORMATS);
}

function cursorOption() {
  return new Option('--cursor <cursor>', 'continue an export that failed; its error message contains the cursor');
}

/** Prints whole pages only, so that an export that failed can be continued without repeating a line. */
async function printExport(pages: AsyncIterable<ExportPage>, cursor: string | undefined): Promise<void> {
  let continuesWith = cursor;
  try {
    for await (const page of pages) {
      await print(page.text);
      continuesWith = page.next;
    }
  } catch (error) {
    if (continuesWith !== undefined) {
      remark(`The export is incomplete. To continue it, repeat the command with: --cursor ${continuesWith}`);
    }
    throw error;
  }
}

function stepOption() {
  return new Option('--step <step>', 'length of a line').choices(['hour', 'day'] as const).default('hour' as const);
}

function startColumn(step: 'hour' | 'day'): Columns<{ readonly start: string }> {
  if (step === 'day') return { 'DAY (UTC)': ({ start }) => start.slice(0, 10) };
  return { 'HOUR (UTC)': ({ start }) => start.slice(0, 16).replace('T', ' ') };
}

/** Returns a bar in eighths of a character. `share`: 0 to 1; more than 0 shows at least one eighth. */
function bar(share: number): string {
  const eighths = Math.ceil(share * BAR_WIDTH * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (BAR_PARTS[eighths % 8] ?? '').trim();
}
