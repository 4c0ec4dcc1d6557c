import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import type { Clock } from '../../base/clock.ts';
import { Throttle } from '../../base/throttle.ts';
import { addressBlock, canonicalAddress } from '../../formats/address-block.ts';
import { isWildcard } from '../../formats/path-and-origin.ts';
import { isLoopback } from '../../formats/url.ts';
import { sendProblem } from '../../http/problems/document.ts';
import type { Logger } from '../../observability/logger.ts';
import { factsOf } from './response-locals.ts';

/** RFC 3986 §3.2.2: a name, an IPv4 address or an IPv6 address in brackets, and an optional port. */
const AUTHORITY = /^(?:\[(?<address>[0-9a-fA-F:.]+)\]|(?<name>[^:[\]]+))(?::\d*)?$/;
const LOGGED_ADDRESSES = 1000;

/**
 * Responds with 421 to requests whose Host is not a name of the listener. If a page's domain resolves to the listener's
 * address (DNS rebinding), the browser sends that domain as Host. Must be mounted after noteRequest. `setting`: what has
 * the names, for the log.
 */
export function checkHost(
  { logger, clock }: { readonly logger: Logger; readonly clock: Clock },
  setting: string,
  isOwn: (host: string | undefined, localAddress: string) => boolean,
): RequestHandler {
  const throttle = new Throttle(clock, 60_000, LOGGED_ADDRESSES);
  return (req, res, next) => {
    if (isOwn(req.headers.host, req.socket.localAddress ?? '')) return next();
    const { clientAddress: client } = factsOf(res);
    sendProblem(res, {
      code: 'misdirected_request',
      detail:
        'The Host of this request is not a name of this listener. Its operator sets the names in the configuration.',
    });
    if (throttle.isDue(addressBlock(client))) {
      const host = req.headers.host?.slice(0, 255);
      logger.warn({ client, host }, `a request was refused: its Host is not in ${setting}`);
    }
  };
}

/** Returns the host in a Host header, in lower case, an IPv6 address without brackets; empty if there is none. */
export function requestedHost(host: string | undefined): string {
  const { address, name } = AUTHORITY.exec(host ?? '')?.groups ?? {};
  return (address ?? name ?? '').toLowerCase().replace(/\.$/, '');
}

/**
 * Returns whether the Host names the admin listener. `host`: the value of the Host header. `localAddress`: the local
 * address of the connection.
 */
export function isOwnName(
  host: string | undefined,
  localAddress: string,
  names: { readonly host: string; readonly allowedHosts: readonly string[] },
): boolean {
  const requested = requestedHost(host);
  if (requested === '') return false;
  if (requested === names.host.toLowerCase() || names.allowedHosts.includes(requested)) return true;
  if (isLoopback(requested) && (isWildcard(names.host) || isLoopback(canonicalAddress(localAddress)))) return true;
  // DNS rebinding needs a name, so addresses are safe. A wildcard listener accepts any address, because port mappings
  // and Kubernetes Services translate addresses.
  return (
    isIP(requested) !== 0 && (isWildcard(names.host) || canonicalAddress(requested) === canonicalAddress(localAddress))
  );
}
