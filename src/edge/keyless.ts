/**
 * Requests of routes with `key: none`. Anyone may send them, so they get few of the gateway's slots. An API key that a
 * client sends by mistake is removed: these backends include receivers of webhooks, which must not learn keys.
 */
import { isIPv4 } from 'node:net';
import { quarterOf } from '../base/quarter.ts';
import { ConcurrencyLimiter } from '../customers/quota/concurrency.ts';
import { addressBlock } from '../formats/address-block.ts';
import { hasGeneratedKey } from './credentials.ts';

/** Counts all requests without a key. No address block has this text. */
const ALL = 'all';

/** Returns what counts as one address: an IPv4 address, or the /64 of an IPv6 address. */
export function keylessBlock(address: string): string {
  // Loopback addresses are one block only where secrets are guessed.
  return isIPv4(address) ? address : addressBlock(address);
}

/** Bounds the requests without a key in progress: all together, and those of each address block. */
export class KeylessSlots {
  readonly #inProgress = new ConcurrencyLimiter();

  /**
   * Takes a slot for a request of the address block `block`. Returns how to give it back, to be called exactly once;
   * undefined if there is none left of the quarter of `maxInFlight`, or of the block's quarter of that.
   */
  take(block: string, maxInFlight: number): (() => void) | undefined {
    const limit = quarterOf(maxInFlight);
    const releaseOfAll = this.#inProgress.take(ALL, limit);
    const releaseOfBlock = releaseOfAll && this.#inProgress.take(block, quarterOf(limit));
    if (releaseOfBlock === undefined) {
      releaseOfAll?.();
      return undefined;
    }
    return () => {
      releaseOfAll?.();
      releaseOfBlock();
    };
  }
}

/**
 * Removes each header, parameter of the query, and Host that contains a generated key from a request as it is about to be
 * sent. Headers of the gateway are no exception: it makes X-Forwarded-Host from the client's Host.
 */
export function removeKeys(request: { headers: string; path: string; host: string | undefined }): void {
  if (request.host !== undefined && hasGeneratedKey(request.host)) request.host = undefined;
  const { headers, path } = request;
  if (hasGeneratedKey(headers)) {
    request.headers = headers.replace(/\r\n.*/g, (line) => (hasGeneratedKey(line) ? '' : line));
  }
  const queryAt = path.indexOf('?');
  if (queryAt < 0 || !hasGeneratedKey(path.slice(queryAt))) return;
  const parameters = path.slice(queryAt + 1).split('&');
  const kept = parameters.filter((parameter) => !hasGeneratedKey(parameter)).join('&');
  request.path = path.slice(0, queryAt) + (kept === '' ? '' : `?${kept}`);
}
