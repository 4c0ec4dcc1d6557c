const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

/** Returns whether a text can be a host name. Text of digits and dots alone is a mistyped address (RFC 1123 §2.1). */
export function isHostName(text: string): boolean {
  return HOST_NAME.test(text) && !/^[\d.]+$/.test(text);
}

/**
 * Returns the host of a URL as Node.js connects to it: IPv6 without brackets, and an IPv4 address as `a.b.c.d`, however
 * the URL spells it.
 */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}
