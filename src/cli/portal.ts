/** Commands for links to the portal. */
import { type Command, Option } from '@commander-js/extra-typings';
import { PORTAL_SCOPES } from '../api/admin/allowed-values.ts';
import { printable } from '../api/client/printable.ts';
import { MAX_PORTAL_SESSION_MS } from '../formats/portal.ts';
import { customerArgument, destructiveCommand, documentCommand } from './admin-commands.ts';
import { confirm } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printJson, remark } from './output.ts';
import { durationParser } from './times.ts';

export function addPortalCommands(program: Command): void {
  const portal = program.command('portal').description('make links to the portal for a customer, and end its sessions');

  documentCommand(portal, 'link', 'make a link that opens the portal once, and print it')
    .addArgument(customerArgument())
    .addOption(
      new Option('--scope <scope...>', 'what it allows (default: everything)')
        .choices(PORTAL_SCOPES)
        .default(PORTAL_SCOPES, 'everything'),
    )
    .option('--user <user>', 'who uses it, for the audit')
    .option('--return-url <url>', 'where the pages lead back to')
    .option(
      '--ttl <duration>',
      'how long the session lasts, at most 1d (default: 1h)',
      durationParser(MAX_PORTAL_SESSION_MS / 1000),
    )
    .action(async (customer, { scope, user, returnUrl, ttl, ...options }) => {
      const client = await connect(options);
      const link = await client.call('POST /admin/v1/customers/:id/portal-sessions', {
        id: customer,
        body: { scopes: [...scope], user, return_url: returnUrl, ttl_seconds: ttl },
      });
      if (options.json) return printJson(link);
      await print(`${link.url}\n`);
      remark(`The link works once, within five minutes. The session ends at ${link.expires_at}.`);
    });

  destructiveCommand(portal, 'revoke', 'end all links, sessions and tokens of a customer, in every instance')
    .addArgument(customerArgument())
    .action(async (customer, options) => {
      const client = await connect(options);
      await confirm(options, () => `End all portal sessions and tokens of customer ${customer}?`);
      await client.call('DELETE /admin/v1/customers/:id/portal-sessions', { id: customer });
      await print(`All portal sessions and tokens of ${printable(customer)} are ended.\n`);
    });
}
