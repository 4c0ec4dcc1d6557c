import { type Command, Option } from 'commander';
import {
  addAdminOptions,
  customerArgument,
  type DestructiveOptions,
  type DocumentOptions,
  integerParser,
  jsonOption,
  yesOption,
} from './admin-options.ts';
import type { AuditOptions } from './audit.ts';
import { timeParser } from './times.ts';

/** Adds the commands for usage, for explaining and previewing limits, and for the audit log. */
export function addUsageCommands(program: Command): void {
  const usage = program.command('usage').description('show and reset the usage of the last hour');

  usage
    .command('list')
    .description('list what each customer used of its limit, in the order of the store')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./usage.ts')).listUsage(options));

  usage
    .command('show')
    .description("show a customer's usage of the last hour")
    .addArgument(customerArgument())
    .addOption(jsonOption())
    .action(async (customer: string, options: DocumentOptions) =>
      (await import('./usage.ts')).showUsage(customer, options),
    );

  usage
    .command('reset')
    .description("reset a customer's usage, so that its whole quota is available again")
    .addArgument(customerArgument())
    .addOption(yesOption())
    .action(async (customer: string, options: DestructiveOptions) =>
      (await import('./usage.ts')).resetUsage(customer, options),
    );

  const explain = program
    .command('explain')
    .description("show a customer's effective limit, and the config line or record that sets it")
    .addArgument(customerArgument())
    .addOption(jsonOption())
    .action(async (customer: string, options: DocumentOptions) =>
      (await import('./usage.ts')).explain(customer, options),
    );

  const preview = program
    .command('preview')
    .description('show what a configuration file would change, and for which customers, without applying it')
    .argument('<file>', 'the YAML configuration file')
    .addOption(jsonOption())
    .action(async (file: string, options: DocumentOptions) => (await import('./preview.ts')).preview(file, options));

  const audit = program
    .command('audit')
    .description('list who changed what, when and from where, newest first')
    .option('--limit <number>', 'maximum number of entries', integerParser(1))
    .option(
      '--from <time>',
      'entries since this time: 2026-01-31, 2026-01-31T12:00:00Z or an age, such as 90d',
      timeParser('ago'),
    )
    .option('--to <time>', 'entries before this time', timeParser('ago'))
    .addOption(new Option('--jsonl', 'print one JSON object per line, page by page, to export them').conflicts('json'))
    .addOption(jsonOption())
    .action(async (options: AuditOptions) => (await import('./audit.ts')).showAudit(options));

  for (const command of [...usage.commands, explain, preview, audit]) addAdminOptions(command);
}
