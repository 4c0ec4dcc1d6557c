import type { Command } from '@commander-js/extra-typings';
import type { ReloadDocument } from '../admin-api/responses.ts';
import { AdminRefusal } from '../admin-client/failures.ts';
import { printable } from '../admin-client/printable.ts';
import { documentCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { FaultyFileError } from './exit-status.ts';
import { print, printJson, remark } from './output.ts';
import { formatDocument, formatTable } from './table.ts';

export function addConfigCommands(program: Command): void {
  // Rejects with a line for each problem of the file.
  documentCommand(
    program,
    'reload',
    'make a gateway reload its configuration file, and show the changes or the problems',
  ).action(async (options) => {
    const client = await connect(options);
    let outcome: ReloadDocument;
    try {
      outcome = await client.call('POST /admin/v1/config/reload');
    } catch (error) {
      if (!(error instanceof AdminRefusal) || !isAboutTheFile(error)) throw error;
      const problems = error.problem.detail.split('\n').map(printable);
      throw new FaultyFileError([...problems, 'Nothing was applied: the gateway keeps its running configuration.']);
    }
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

function isAboutTheFile({ problem }: AdminRefusal): boolean {
  return problem.status === 422 || problem.status === 409;
}
