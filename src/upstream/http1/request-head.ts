/** A header name: a token (RFC 9110 §5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A header value (RFC 9110 §5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Returns the head of a request without a body, as sent to the upstream (RFC 9112 §3) in Latin-1. `headers`: flat
 * (name, value, …). Host is put in front of them unless it is the first. The caller has validated `method` and `path`.
 * @throws TypeError if a header name or value has a forbidden character: no unchecked header is ever written.
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
