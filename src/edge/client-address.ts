import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { type AddressBlocks, canonicalAddress, peerAddress } from '../formats/address-block.ts';

/** The client of a request, identified through the configured trusted proxies. */
export interface Client {
  /** The nearest hop that is not a trusted proxy. Without one: the farthest hop before any invalid one. */
  readonly address: string;
  /** A trusted proxy has named the address: it is not just that of the connection. */
  readonly isNamed: boolean;
  /** The value of X-Forwarded-For for the backend. */
  readonly forwardedFor: string;
  readonly proto: 'http' | 'https';
  /** X-Forwarded-Host from a trusted proxy. Undefined if there is no valid one: the request's own host applies. */
  readonly host: string | undefined;
}

/** Which X-Forwarded-* headers count. */
export interface ProxyTrust {
  readonly trustedProxies: AddressBlocks;
  /** Whether X-Forwarded-Host from trusted proxies is used; otherwise the request's own Host is. */
  readonly trustForwardedHost: boolean;
}

/** In place of the address of a client that no proxy has named. Not an address, so no rule for addresses allows it. */
export const UNKNOWN_ADDRESS = 'unknown';

const HOST_VALUE = /^[A-Za-z0-9._~:[\]-]{1,255}$/;

/** Returns the address in one X-Forwarded-For hop, in canonical spelling. Some proxies add a port, and brackets around IPv6. */
function addressOf(hop: string): string {
  const [, bracketed, ipv4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/.exec(hop) ?? [];
  return canonicalAddress(bracketed ?? ipv4 ?? hop);
}

/** Returns the last value: the trusted peer wrote or checked it. The client may have sent every value before it. */
function nearestOf(list: string | undefined): string | undefined {
  return list?.slice(list.lastIndexOf(',') + 1).trim();
}

/**
 * Identifies the client. X-Forwarded-* headers count only if the peer is a trusted proxy. X-Forwarded-For is read from
 * its end: the first untrusted address is the client's. The client may have forged every hop before it.
 */
export function identifyClient(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  { trustedProxies, trustForwardedHost }: ProxyTrust,
): Client {
  const peer = peerAddress(socket);
  const ownProto = 'encrypted' in socket ? 'https' : 'http';
  if (!trustedProxies.has(peer)) {
    return { address: peer, isNamed: false, forwardedFor: peer, proto: ownProto, host: undefined };
  }
  // Node.js joins repeated headers of these names with commas.
  const forwardedFor = headers['x-forwarded-for'] as string | undefined;
  const chain = (forwardedFor ?? '').split(',').map((hop) => hop.trim());
  let address = peer;
  let isNamed = false;
  for (let i = chain.length - 1; i >= 0 && trustedProxies.has(address); i--) {
    const hop = addressOf(chain[i] ?? '');
    if (isIP(hop) === 0) break;
    address = hop;
    isNamed = true;
  }
  const proto = nearestOf(headers['x-forwarded-proto'] as string | undefined);
  const host = trustForwardedHost ? nearestOf(headers['x-forwarded-host'] as string | undefined) : undefined;
  return {
    address,
    isNamed,
    forwardedFor: forwardedFor ? `${forwardedFor}, ${peer}` : peer,
    proto: proto === 'http' || proto === 'https' ? proto : ownProto,
    host: host !== undefined && HOST_VALUE.test(host) ? host : undefined,
  };
}
