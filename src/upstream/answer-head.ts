import { comparableName, connectionNamed, HOP_BY_HOP } from './hop-by-hop.ts';

/** What may stand in a reason phrase besides obs-text (RFC 9112 §4); another one is left to Node.js's default. */
const CLEAN_REASON = /^[\t\x20-\x7e]+$/;

/** Whether the upstream's reason phrase can be passed on. */
export function isCleanReason(reason: string): boolean {
  return CLEAN_REASON.test(reason);
}

/** RFC 9110 §15: the status codes of final answers. */
export function isFinalStatus(status: number): boolean {
  return status >= 200 && status <= 599;
}

export function isInterimStatus(status: number): boolean {
  return status >= 100 && status <= 199;
}

/**
 * The header fields of the answer to the caller, flat: the upstream's as they came (names, order, repeats) without
 * those of the connection, and then the gateway's own.
 * @param received - the upstream's fields, flat; bytes are read as Latin-1, which Node.js writes back unchanged
 * @param status - the final status: RFC 9110 §8.6 forbids Content-Length in a 204
 * @param ownNames - names in lower case that only the gateway gives
 * @param own - the gateway's fields, flat
 */
export function buildAnswerHeaders(
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
