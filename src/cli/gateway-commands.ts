import type { Command } from 'commander';
import { addAdminOptions, type DocumentOptions, jsonOption } from './admin-options.ts';

/** Adds the commands about one running gateway. */
export function addGatewayCommands(program: Command): void {
  const status = program
    .command('status')
    .description('show what a gateway runs and what it is connected to; exit status 1 when something is wrong with it')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./status.ts')).showStatus(options));

  const reload = program
    .command('reload')
    .description('have a gateway read its configuration file now, and show what changed or what is wrong with it')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./running-config.ts')).reloadConfig(options));

  const show = program
    .command('config')
    .description('the configuration that a gateway runs')
    .command('show')
    .description('show it as YAML, with defaults and without secrets')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./running-config.ts')).showConfig(options));

  for (const command of [status, reload, show]) addAdminOptions(command);
}
