import { isIP } from 'node:net';
import { hostOf } from './host.ts';
import { isPublicAddress } from './public-address.ts';

const MAX_LENGTH = 2048;

/**
 * URL parsers disagree about the host if `@`, `\` or a third slash comes before the path, even where WHATWG's finds no
 * credentials.
 */
const PATTERN = /^https?:\/\/(?!\/|[^/?]*[@\\])[\x21\x22\x24-\x7e]+$/i;

/** The rule of {@link isWebhookUrl}, in words. */
export const WEBHOOK_URL_RULE =
  'must be https://host[:port]/path of at most 2048 characters, without @ or \\ before the path, without a fragment, and not an address of a private network';

/**
 * Returns whether notices may be sent to a URL. What a host name resolves to is checked when a connection is made.
 * `allowPrivate`: the operator's own endpoint, which may be in a private network and may use plain HTTP.
 */
export function isWebhookUrl(text: string, { allowPrivate = false } = {}): boolean {
  const url = text.length <= MAX_LENGTH && PATTERN.test(text) ? URL.parse(text) : null;
  if (url === null) return false;
  if (allowPrivate) return true;
  const host = hostOf(url);
  return url.protocol === 'https:' && (isIP(host) === 0 ? !/^localhost\.?$/.test(host) : isPublicAddress(host));
}
