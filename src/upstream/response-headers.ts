import { comparableName, connectionNamed, HOP_BY_HOP } from './hop-by-hop.ts';

/** A reason phrase (RFC 9112 §4) without obs-text. Any other is replaced by Node.js's default. */
export const CLEAN_REASON = /^[\t\x20-\x7e]+$/;

/**
 * Returns the headers of the response to the client, flat (name, value, …): the upstream's as received (names, order,
 * repeats), then the gateway's own. Drops hop-by-hop headers, headers that only the gateway sets, and repeated Dates.
 * @param received - the upstream's headers, flat; bytes are decoded as Latin-1, which Node.js writes back unchanged
 * @param status - the final status: RFC 9110 §8.6 forbids Content-Length in a 204
 * @param ownNames - lower-case names of headers that only the gateway sets
 * @param own - the gateway's headers, flat
 */
export function buildResponseHeaders(
  received: readonly string[],
  status: number,
  ownNames: ReadonlySet<string>,
  own: readonly string[],
): string[] {
  const named = connectionNamed(received);
  const headers: string[] = [];
  let dated = false;
  for (let i = 0; i < received.length; i += 2) {
    const name = received[i] ?? '';
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || ownNames.has(lower) || named?.has(lower)) continue;
    if (lower.startsWith('x') && comparableName(lower).startsWith('x-tollgate-')) continue;
    if (lower === 'content-length' && status === 204) continue;
    if (lower === 'date') {
      if (dated) continue;
      dated = true;
    }
    headers.push(name, received[i + 1] ?? '');
  }
  for (const text of own) headers.push(text);
  return headers;
}
