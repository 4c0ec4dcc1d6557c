import type { Command } from 'commander';
import { addAdminOptions, type DocumentOptions, jsonOption } from './admin-options.ts';

/** Adds the commands about one running gateway. */
export function addGatewayCommands(program: Command): void {
  const status = program
    .command('status')
    .description('show the version, configuration and connections of a gateway; exit status 1 if it is degraded')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./status.ts')).showStatus(options));

  const reload = program
    .command('reload')
    .description('make a gateway reload its configuration file, and show the changes or the problems')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./running-config.ts')).reloadConfig(options));

  const show = program
    .command('config')
    .description('the running configuration of a gateway')
    .command('show')
    .description('show it as YAML, with defaults and without secrets')
    .addOption(jsonOption())
    .action(async (options: DocumentOptions) => (await import('./running-config.ts')).showConfig(options));

  for (const command of [status, reload, show]) addAdminOptions(command);
}
