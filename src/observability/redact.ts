const REDACTIONS: readonly (readonly [RegExp, string])[] = [
  [/\btg_[0-9A-Za-z_]{4,}/g, 'tg_[redacted]'],
  // RFC 3986 §3.2.1: user information of a URL, such as redis://user:password@host. A password may hold a raw `@`.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi, '$1[redacted]@'],
  // RFC 9110 §11.4: a scheme and its credentials.
  [/\b(bearer|basic)\s+[A-Za-z0-9\-._~+/]{8,}=*/gi, '$1 [redacted]'],
];

/**
 * Returns a text of unknown origin, such as an error's message, without anything that looks like a credential. It is
 * the second line of defence: known secrets must not get into a message at all.
 */
export function redactSecrets(text: string): string {
  return REDACTIONS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
}
