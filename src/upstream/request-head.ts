/** A header name: a token (RFC 9110 §5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A header value (RFC 9110 §5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * A request without content as it goes to the upstream (RFC 9112 §3), in Latin-1. `headers`: flat; Host is put before
 * them unless it is the first of them. `method` and `path` have been approved.
 * @throws TypeError for a field that would be read as something else: nothing that was not looked at is ever written.
 */
export function requestHead(method: string, path: string, authority: string, headers: readonly string[]): string {
  let head = `${method} ${path} HTTP/1.1\r\n`;
  if (headers[0] !== 'Host') head += `Host: ${authority}\r\n`;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`invalid ${name} header`);
    head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}
