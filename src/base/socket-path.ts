/** The longest path that Linux takes, in bytes. macOS takes four less. */
const MAX_PATH_BYTES = 107;

/** Returns whether a text can be the path of a unix socket in a URL, where it stands unescaped. */
export function isSocketPath(text: string): boolean {
  return /^(?:\/[A-Za-z0-9._~@+-]+)+$/.test(text) && text.length <= MAX_PATH_BYTES && !/\/\.{1,2}(?:\/|$)/.test(text);
}
