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

/** The longest path that Linux takes, in bytes. macOS takes four less. */
const MAX_PATH_BYTES = 107;

/** Returns whether a text can be the path of a unix socket in a URL, where it stands unescaped. */
export function isSocketPath(text: string): boolean {
  return /^(?:\/[A-Za-z0-9._~@+-]+)+$/.test(text) && text.length <= MAX_PATH_BYTES && !/\/\.{1,2}(?:\/|$)/.test(text);
}
