import { pathOf } from '../admin-client/admin-client.ts';
import { USAGE } from '../admin-client/documents.ts';
import type { DocumentOptions, EndingOptions } from './admin-options.ts';
import { confirm, requireSomebodyToAsk } from './confirm.ts';
import { connect } from './connect.ts';
import { print, printDocument } from './output.ts';

export async function showUsage(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  await printDocument(await client.get(USAGE, pathOf`/admin/v1/customers/${customer}/usage`), options);
}

export async function resetUsage(customer: string, options: EndingOptions): Promise<void> {
  requireSomebodyToAsk(options);
  const client = await connect(options);
  if (!options.yes) await confirm(`Reset the usage of customer ${customer}?`);
  await client.delete(pathOf`/admin/v1/customers/${customer}/usage`);
  await print(`The usage of customer ${customer} is reset.\n`);
}
