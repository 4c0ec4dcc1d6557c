/**
 * Headers of every response of the admin and portal listeners, problem documents included. A page that was injected despite
 * everything else could run no script of its own and send data nowhere; other sites can neither frame a page nor
 * read its window.
 */
export const SECURITY_HEADERS: ReadonlyMap<string, string> = new Map([
  [
    'Content-Security-Policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  ],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
]);

const NAMES = new Set([...SECURITY_HEADERS.keys()].map((name) => name.toLowerCase()));

/** `name`: in lower case. */
export function isSecurityHeader(name: string): boolean {
  return NAMES.has(name);
}
