import { readFile } from 'node:fs/promises';
import type { Command } from '@commander-js/extra-typings';
import type { PreviewDocument } from '../admin-api/responses.ts';
import { AdminRefusal } from '../admin-client/failures.ts';
import { printable } from '../admin-client/printable.ts';
import { systemReason } from '../config/problems.ts';
import { documentCommand } from './admin-commands.ts';
import { connect } from './connect.ts';
import { FaultyFileError } from './exit-status.ts';
import { printJson, printSections } from './output.ts';
import { formatDocument, formatTable } from './table.ts';

const REFUSALS: ReadonlySet<PreviewDocument['reload']> = new Set(['restart_required', 'plan_in_use']);

/** The name of the posted file in the admin API's messages. */
const POSTED = /^\(posted\)/;

const RELOADS: Readonly<Record<PreviewDocument['reload'], string>> = {
  applied: 'would be applied',
  unchanged: 'would change nothing',
  restart_required: 'would be refused: a restart is needed',
  plan_in_use: 'would be refused: customers are on a plan that it drops',
};

/** Adds a command that prints what a file would change. It fails if a reload would refuse the file. */
export function addPreviewCommand(program: Command): void {
  documentCommand(program, 'preview', 'show what a configuration file would change and for whom, without applying it')
    .argument('<file>', 'the YAML configuration file')
    .action(async (file, options) => {
      const body = await contentOf(file);
      const client = await connect(options);
      let result: PreviewDocument;
      try {
        result = await client.call('POST /admin/v1/config/preview', { body });
      } catch (error) {
        const lines = error instanceof AdminRefusal ? error.problem.detail.split('\n') : [];
        if (!lines.some((line) => POSTED.test(line))) throw error;
        throw new FaultyFileError(lines.map((line) => printable(line.replace(POSTED, file))));
      }
      await (options.json ? printJson(result) : printSections(...sections(result)));
      if (REFUSALS.has(result.reload)) throw new FaultyFileError([`${file}: a reload ${RELOADS[result.reload]}`]);
    });
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new FaultyFileError([`${file}: cannot be read: ${systemReason(error)}`]);
  }
}

/** Returns the sections that are not empty. */
function sections(document: PreviewDocument): string[] {
  const { reload, changes, dropped_plans: dropped, customers, limits, closest } = document;
  const { changes_total: total = changes.length, uncompared_secrets: uncompared } = document;
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
      used: 'used',
      before: 'limit_before',
      after: 'limit_after',
      ratio: 'ratio',
      plan: 'plan',
      customer: 'customer',
    }),
  ];
}
