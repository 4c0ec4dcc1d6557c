/** Hides the paths of webhook URLs from actors that may only read: at many services, whoever has the path may post. */
import { HIDDEN } from '../../config/disclose.ts';
import { CUSTOMER_ENDPOINT } from '../../customers/notices/notice.ts';

/** Members of documents and of the audit. `endpoint` is also a trace collector's, which may have a secret path too. */
const URL_MEMBERS: ReadonlySet<string> = new Set(['notify_url', 'endpoint']);

/** Returns a document with the origin alone of each webhook URL. */
export function withWebhookOrigins(document: unknown): unknown {
  return JSON.parse(
    JSON.stringify(document, (name, value) => {
      if (URL_MEMBERS.has(name) && typeof value === 'string') return originOf(value);
      if (name !== 'endpoints' || !Array.isArray(value)) return value;
      // Of the configuration.
      return value.map(({ url, ...endpoint }) => ({
        ...(typeof url === 'string' && { url: originOf(url) }),
        ...endpoint,
      }));
    }),
  );
}

function originOf(url: string): string {
  // Other programs may have written something else than a URL.
  return url === CUSTOMER_ENDPOINT ? url : (URL.parse(url)?.origin ?? HIDDEN);
}
