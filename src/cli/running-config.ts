/** Commands for the configuration that a gateway runs, and for a file that it might run. */
import { readFile } from 'node:fs/promises';
import type { Command } from '@commander-js/extra-typings';
import type { PreviewDocument } from '../api/admin/responses.ts';
import { AdminRefusal } from '../api/client/failures.ts';
import { printable } from '../api/client/printable.ts';
import { systemReason } from '../config/problems.ts';
import { documentCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { FaultyFileError } from './exit-status.ts';
import { print, printJson, printSections, remark } from './output.ts';
import { formatDocument, formatTable } from './table.ts';

/** The name of the posted file in the admin API's messages. */
const POSTED = /^\(posted\)/;

const RELOADS: Readonly<Record<PreviewDocument['reload'], string>> = {
  applied: 'would be applied',
  unchanged: 'would change nothing',
  restart_required: 'would be refused: a restart is needed',
  plan_in_use: 'would be refused: customers are on a plan that it drops',
};

export function addConfigCommands(program: Command): void {
  // Rejects with a line for each problem of the file.
  documentCommand(
    program,
    'reload',
    'make a gateway reload its configuration file, and show the changes or the problems',
  ).action(async (options) => {
    const client = await connect(options);
    const outcome = await client.call('POST /admin/v1/config/reload').catch((error: unknown) => {
      if (!(error instanceof AdminRefusal) || ![409, 422].includes(error.problem.status)) throw error;
      const problems = error.problem.detail.split('\n').map(printable);
      throw new FaultyFileError([...problems, 'Nothing was applied: the gateway keeps its running configuration.']);
    });
    if (options.json) return printJson(outcome);
    const { result, hash, changes, changes_total: total, warnings } = outcome;
    const listed = total > changes.length ? `, of which the first ${changes.length} are listed` : '';
    await print(formatDocument({ reload: result, hash, changes: `${total}${listed}` }));
    for (const warning of warnings) remark(printable(warning));
    if (changes.length > 0) await print(`\n${formatTable(changes, { CHANGE: ({ text }) => text })}`);
  });

  const config = program.command('config').description('the running configuration of a gateway');
  documentCommand(config, 'show', 'show it as YAML, with defaults and without secrets')
    .option('--file', 'only what its file sets, as written there, to change and preview it')
    .action(async (options) => {
      const client = await connect(options);
      const config = await client.call(options.file ? 'GET /admin/v1/config/file' : 'GET /admin/v1/config');
      if (options.json) return printJson(config);
      const { stringify } = await import('yaml');
      await print(stringify(config).split('\n').map(printable).join('\n'));
    });
}

/** Adds a command that prints what a file would change. It fails if a reload would refuse the file. */
export function addPreviewCommand(program: Command): void {
  documentCommand(program, 'preview', 'show what a configuration file would change and for whom, without applying it')
    .argument('<file>', 'the YAML configuration file')
    .action(async (file, options) => {
      const body = await readFile(file, 'utf8').catch((error: unknown) => {
        throw new FaultyFileError([`${file}: cannot be read: ${systemReason(error)}`]);
      });
      const client = await connect(options);
      const result = await client.call('POST /admin/v1/config/preview', { body }).catch((error: unknown) => {
        const lines = error instanceof AdminRefusal ? error.problem.detail.split('\n') : [];
        if (!lines.some((line) => POSTED.test(line))) throw error;
        throw new FaultyFileError(lines.map((line) => printable(line.replace(POSTED, file))));
      });
      await (options.json ? printJson(result) : printSections(...sections(result)));
      const { reload } = result;
      const isRefused = reload === 'restart_required' || reload === 'plan_in_use';
      if (isRefused) throw new FaultyFileError([`${file}: a reload ${RELOADS[reload]}`]);
    });
}

/** Returns the sections that are not empty. */
function sections(document: PreviewDocument): string[] {
  const { reload, changes, changes_total: total, customers, limits, closest } = document;
  const { dropped_plans: dropped, uncompared_secrets: uncompared } = document;
  const summary = formatDocument({
    reload: RELOADS[reload],
    ...(total > changes.length && { changes: `${total}, of which the first ${changes.length} are listed` }),
    ...(uncompared.length > 0 && { 'secrets not compared': uncompared.join(', ') }),
    customers: customers.total,
    'limits that change': `${customers.raised} up, ${customers.lowered} down, ${customers.gained} new, ${customers.lost} gone`,
    'refused now': `${customers.refused}, ${customers.newly_refused} of them by this`,
    'near (80 %)': customers.near,
  });
  return [
    summary,
    formatTable(changes, { 'changes by': 'takes_effect', key: 'text' }),
    formatTable(dropped, { customers: 'customers', 'dropped plan': 'plan' }),
    formatTable(limits, { customers: 'customers', refused: 'refused', limit: 'change' }),
    formatTable(closest, {
      state: 'state',
      window: 'window',
      used: 'used',
      before: 'limit_before',
      after: 'limit_after',
      ratio: 'ratio',
      plan: 'plan',
      customer: 'customer',
    }),
  ];
}
