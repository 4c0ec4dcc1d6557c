/** The command for maintenance: whether the gateways refuse requests, of which routes, and until when. */
import { Argument, type Command } from '@commander-js/extra-typings';
import type { MaintenanceDocument } from '../api/admin/responses.ts';
import { documentCommand, repeated } from './admin-commands.ts';
import { connect } from './connect.ts';
import { UsageError } from './exit-status.ts';
import { printDocument } from './output.ts';
import { shortTime } from './table.ts';
import { timeParser } from './times.ts';

const MODES = { off: 'off', 'read-only': 'read_only', down: 'down' } as const;

export function addMaintenanceCommand(program: Command): void {
  documentCommand(program, 'maintenance', 'refuse requests with 503 in all gateways, or show whether they do')
    .addArgument(
      new Argument('[mode]', 'down refuses all requests, read-only lets GET, HEAD and OPTIONS pass').choices(
        Object.keys(MODES) as (keyof typeof MODES)[],
      ),
    )
    .option('--route <template>', 'only this route, by its path in the configuration; may be repeated', repeated)
    .option('--until <time>', 'when it ends: 2030-01-31T12:00:00Z or a duration, such as 2h', timeParser('future'))
    .option('--message <text>', 'what clients read in the refusals, at most 500 characters')
    .action(async (mode, { route: routes, until, message, ...options }) => {
      const change = { routes, until, message };
      const isChange = Object.values(change).some((value) => value !== undefined);
      if (isChange && (mode === undefined || mode === 'off')) {
        throw new UsageError('--route, --until and --message go with down or read-only');
      }
      const client = await connect(options);
      const maintenance = await (mode === undefined
        ? client.call('GET /admin/v1/maintenance')
        : client.call('PUT /admin/v1/maintenance', { body: { mode: MODES[mode], ...change } }));
      await printDocument(maintenance, options);
    });
}

/** Returns a maintenance in one line. */
export function maintenanceInWords({ mode, routes, until, since }: MaintenanceDocument): string {
  if (mode === 'off') return mode;
  const end = until === null ? '' : `, until ${shortTime(until)}`;
  return `${mode} for ${routes?.join(', ') ?? 'all routes'} since ${shortTime(since ?? '')}${end}`;
}
