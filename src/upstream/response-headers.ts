import { comparableName, connectionNamed, HOP_BY_HOP } from './hop-by-hop.ts';

/** A reason phrase (RFC 9112 §4) without obs-text. Any other is replaced by Node.js's default. */
export const CLEAN_REASON = /^[\t\x20-\x7e]+$/;

/**
 * Removes from `headers` what is not passed on to the client: hop-by-hop headers, headers that only the gateway sets, and
 * repeated Dates. All others stay as received (names, order, repeats).
 * @param headers - the upstream's, flat (name, value, …); decoded as Latin-1, which Node.js writes back unchanged
 * @param status - the final status: RFC 9110 §8.6 forbids Content-Length in a 204
 * @param ownNames - lower-case names of headers that only the gateway sets
 */
export function removeHopHeaders(headers: string[], status: number, ownNames: ReadonlySet<string>): void {
  const named = connectionNamed(headers);
  let kept = 0;
  let dated = false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || ownNames.has(lower) || named?.has(lower)) continue;
    if (lower.startsWith('x') && comparableName(lower).startsWith('x-tollgate-')) continue;
    if (lower === 'content-length' && status === 204) continue;
    if (lower === 'date') {
      if (dated) continue;
      dated = true;
    }
    headers[kept++] = name;
    headers[kept++] = headers[i + 1] ?? '';
  }
  headers.length = kept;
}
