/**
 * Headers that concern one connection only and that a gateway never forwards, in either direction (RFC 9110 §7.6.1).
 * `Proxy-Authenticate`, `Proxy-Authentication-Info` and `Proxy-Authorization` concern one hop only (§11.7), so they end
 * here. `HTTP2-Settings` belongs to the h2c upgrade (RFC 7540 §3.2.1), which the gateway never makes.
 */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

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

const UNUSUAL = /[^a-z0-9-]/;

/**
 * Replaces every character of a lower-case header name except letters and digits by `-`. Servers that pass headers as
 * variables (CGI, WSGI, PHP) read `_`, and some of them any other character of a token, as `-`: a spoofed header could
 * use each of them. Not cached: a look-up takes as long, and a cache could be filled with made-up names.
 */
export function comparableName(lowerName: string): string {
  return UNUSUAL.test(lowerName) ? lowerName.replace(/[^a-z0-9]/g, '-') : lowerName;
}
