import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  adminCommand,
  customerArgument,
  type DestructiveOptions,
  type DocumentOptions,
  destructiveCommand,
  documentCommand,
  integerParser,
} from './admin-options.ts';
import type { AuditOptions } from './audit.ts';
import type { NoticeListOptions } from './notices.ts';
import type { SimulateOptions } from './simulate.ts';
import { timeParser } from './times.ts';
import type { ExportOptions, NearOptions, RangeOptions } from './usage-history.ts';

const usageModule = () => import('./usage.ts');
const historyModule = () => import('./usage-history.ts');

const EXPORT_FORMATS = ['csv', 'jsonl', 'cloudevents', 'stripe'];

function rangeOptions(command: Command): Command {
  return command
    .option(
      '--from <time>',
      'start of the range: 2026-01-31, 2026-01-31T12:00:00Z or an age, such as 90d',
      timeParser('past'),
    )
    .option('--to <time>', 'end of the range', timeParser('past'));
}

function stepOption(): Option {
  return new Option('--step <step>', 'length of a line').choices(['hour', 'day']).default('hour');
}

/** Adds `name=limit` to the limits given so far. @throws InvalidArgumentError */
function limitParser(text: string, before: ReadonlyMap<string, number> = new Map()): ReadonlyMap<string, number> {
  const [, name, limit] = /^(.+)=([1-9]\d{0,14})$/.exec(text) ?? [];
  if (name !== undefined) return new Map([...before, [name, Number(limit)]]);
  throw new InvalidArgumentError('It must be a name, "=" and an integer of at least 1, such as starter=800.');
}

/** Adds the commands for usage and limits, the audit log, and the state of a gateway. */
export function addGatewayCommands(program: Command): void {
  const usage = program.command('usage').description('show usage, now and in the past, and reset it');
  documentCommand(usage, 'list', 'list what each customer used of its limit, in the order of the store').action(
    async (options: DocumentOptions) => (await usageModule()).listUsage(options),
  );
  documentCommand(usage, 'show', "show a customer's usage of the last hour")
    .addArgument(customerArgument())
    .action(async (customer: string, options: DocumentOptions) => (await usageModule()).showUsage(customer, options));
  destructiveCommand(usage, 'reset', "reset a customer's usage, so that its whole quota is available again")
    .addArgument(customerArgument())
    .action(async (customer: string, options: DestructiveOptions) =>
      (await usageModule()).resetUsage(customer, options),
    );

  rangeOptions(documentCommand(usage, 'history', 'show what a customer used, by hour or day'))
    .addArgument(customerArgument())
    .addOption(stepOption())
    .action(async (customer: string, options: RangeOptions) => (await historyModule()).showHistory(customer, options));
  rangeOptions(documentCommand(usage, 'totals', 'show requests, refusals and upstream errors of each plan'))
    .addOption(stepOption())
    .action(async (options: RangeOptions) => (await historyModule()).showTotals(options));
  documentCommand(usage, 'near', 'list the customers nearest to their limits, highest percentage first')
    .option('--above <percent>', 'the lowest percentage of the limit', integerParser(50, 999), 80)
    .action(async (options: NearOptions) => (await historyModule()).listNear(options));
  documentCommand(usage, 'refused', 'list the customers that were refused in the last hour, and why').action(
    async (options: DocumentOptions) => (await historyModule()).listRefused(options),
  );
  rangeOptions(adminCommand(usage, 'export', 'print the usage of closed hours, one line per customer and hour'))
    .addOption(new Option('--format <format>', 'format of a line').choices(EXPORT_FORMATS).default('csv'))
    .option('--cursor <cursor>', 'continue an export that failed; its error message contains the cursor')
    .action(async (options: ExportOptions) => (await historyModule()).exportUsage(options));

  const notices = program.command('notices').description('list webhook notices that are not delivered, and retry them');
  documentCommand(notices, 'list', 'list notices that are not delivered yet, oldest first')
    .addOption(new Option('--state <state>', 'only pending or dead ones').choices(['pending', 'dead']))
    .action(async (options: NoticeListOptions) => (await import('./notices.ts')).listNotices(options));
  documentCommand(notices, 'retry', 'send a notice again to the endpoints that do not have it')
    .argument('<notice_id>', 'the id of the notice')
    .action(async (id: string, options: DocumentOptions) => (await import('./notices.ts')).retryNotice(id, options));

  documentCommand(program, 'explain', "show a customer's effective limit, and the config line or record that sets it")
    .addArgument(customerArgument())
    .action(async (customer: string, options: DocumentOptions) => (await usageModule()).explain(customer, options));

  documentCommand(program, 'preview', 'show what a configuration file would change and for whom, without applying it')
    .argument('<file>', 'the YAML configuration file')
    .action(async (file: string, options: DocumentOptions) => (await import('./preview.ts')).preview(file, options));

  documentCommand(program, 'simulate', 'show whom other limits would have refused, by the usage history', 'print JSON')
    .option('--plan <plan=limit...>', 'requests per hour of a plan: starter=800', limitParser)
    .option('--customer <customer=limit...>', 'requests per hour of a customer', limitParser)
    .option('--from <time>', 'start of the usage history to read: 2026-01-31 or an age, such as 7d', timeParser('past'))
    .action(async (options: SimulateOptions) => (await import('./simulate.ts')).simulate(options));

  rangeOptions(documentCommand(program, 'audit', 'list who changed what, when and from where, newest first'))
    .option('--limit <number>', 'maximum number of entries', integerParser(1))
    .option('--customer <customer>', 'only entries about this customer')
    .option('--action <action>', 'only entries of this action, such as key.create')
    .addOption(new Option('--jsonl', 'print one JSON object per line, page by page, to export them').conflicts('json'))
    .action(async (options: AuditOptions) => (await import('./audit.ts')).showAudit(options));

  documentCommand(
    program,
    'status',
    'show the version, configuration and connections of a gateway; exit status 1 if it is degraded',
  ).action(async (options: DocumentOptions) => (await import('./status.ts')).showStatus(options));

  documentCommand(
    program,
    'reload',
    'make a gateway reload its configuration file, and show the changes or the problems',
  ).action(async (options: DocumentOptions) => (await import('./running-config.ts')).reloadConfig(options));

  const config = program.command('config').description('the running configuration of a gateway');
  documentCommand(config, 'show', 'show it as YAML, with defaults and without secrets').action(
    async (options: DocumentOptions) => (await import('./running-config.ts')).showConfig(options),
  );
}
