import { HOP_BY_HOP } from '../formats/header-names.ts';

/** What a Connection header may name without effect. Content-Length frames the content, for every recipient. */
const UNNAMED: ReadonlySet<string> = new Set(['', 'close', 'content-length', ...HOP_BY_HOP]);

/** Returns the further header names, in lower case, that `Connection` headers list; undefined if there are none. */
export function connectionNamed(rawHeaders: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    for (const option of (rawHeaders[i + 1] ?? '').toLowerCase().split(',')) {
      const token = option.trim();
      if (UNNAMED.has(token)) continue;
      named ??= new Set();
      named.add(token);
    }
  }
  return named;
}
