/** Config files made from those in config/, with their comments. */
import { readFile } from 'node:fs/promises';
import { type Document, parseDocument } from 'yaml';
import { routesSection } from '../routes.ts';
import type { TriedApi } from './tried-api.ts';

interface Settings {
  readonly requestsPerHour?: number | undefined;
  readonly keyHeader?: string | undefined;
}

/** Returns the config for production: it reads its addresses and secrets from variables. */
export async function productionConfig(
  { template, routes }: TriedApi,
  { requestsPerHour, keyHeader }: Settings,
): Promise<Document> {
  const file = new URL(`../../../config/${template}`, import.meta.url);
  const document: Document = parseDocument(await readFile(file, 'utf8'));
  // The schema for editors is not beside the new file.
  document.commentBefore = document.commentBefore?.replace(/^ yaml-language-server:.*\n/, '') ?? null;
  if (routes) document.set('routes', parseDocument(routesSection(routes)).get('routes'));
  if (requestsPerHour !== undefined) document.setIn(['plans', 'starter', 'requests_per_hour'], requestsPerHour);
  if (keyHeader !== undefined) document.setIn(['auth', 'key_headers'], [keyHeader]);
  return document;
}

/** Makes the config one for this machine alone, with an embedded store beside the file. */
export function makeLocal(document: Document, backend: URL, ports: readonly number[]): void {
  document.commentBefore = ' A gateway to try, on this machine alone. It applies changes of this file within a second.';
  for (const [index, section] of ['listen', 'ops', 'admin', 'portal'].entries()) {
    document.setIn([section, 'host'], '127.0.0.1');
    document.setIn([section, 'port'], ports[index]);
  }
  document.setIn(['portal', 'public_url'], `http://127.0.0.1:${document.getIn(['portal', 'port'])}`);
  document.setIn(['portal', 'api_url'], `http://127.0.0.1:${document.getIn(['listen', 'port'])}`);
  document.set('workers', 1);
  document.set('store', { url: 'sqlite:store.sqlite' });
  document.setIn(['upstream', 'urls'], [backend.href]);
  // No load balancer is in front.
  document.set('shutdown', { not_ready_ms: 0 });
}
