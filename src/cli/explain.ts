import { pathOf } from '../admin-client/admin-client.ts';
import { EXPLANATION } from '../admin-client/documents.ts';
import type { DocumentOptions } from './admin-options.ts';
import { connect } from './connect.ts';
import { printDocument } from './output.ts';

export async function explain(customer: string, options: DocumentOptions): Promise<void> {
  const client = await connect(options);
  await printDocument(await client.get(EXPLANATION, pathOf`/admin/v1/customers/${customer}/explain`), options);
}
