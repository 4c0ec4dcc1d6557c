import { isIP } from 'node:net';

/** Returns `a.b.c.d` as two of the eight groups of an IPv6 address (RFC 4291 §2.2). */
function groupsOfIpv4(address: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

function groupsOf(part: string): number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => (group.includes('.') ? groupsOfIpv4(group) : [Number.parseInt(group, 16)]));
}

/** Returns the eight groups of an IPv6 address, with `::` expanded. */
function expand(address: string): number[] {
  const [head = '', tail = ''] = address.split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail);
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

/** Returns the IPv4 address that these groups embed (RFC 4291 §2.5.5.2); undefined if they are no IPv4-mapped address. */
function ipv4Of(groups: readonly number[]): string | undefined {
  const [, , , , , sixth, seventh = 0, eighth = 0] = groups;
  if (sixth !== 0xffff || groups.slice(0, 5).some((group) => group !== 0)) return undefined;
  return [seventh >> 8, seventh & 0xff, eighth >> 8, eighth & 0xff].join('.');
}

/** Returns `a.b.c.d` for every spelling of `::ffff:a.b.c.d`, as a dual-stack socket reports an IPv4 peer. */
function unmapped(address: string): string {
  // Only mapped addresses have these letters after leading zeros: others need no parsing.
  if (!/^[0:]+:ffff:/i.test(address) || isIP(address) !== 6) return address;
  return ipv4Of(expand(address)) ?? address;
}

/** Returns an address in the one spelling that logs and comparisons use: IPv6 has several, and a zone is left out. */
export function canonicalAddress(address: string): string {
  const [withoutZone = ''] = address.split('%', 1); // RFC 4007 §11
  const plain = unmapped(withoutZone);
  return isIP(plain) === 6 ? new URL(`http://[${plain}]`).hostname.slice(1, -1) : plain;
}

/** Returns the canonical address of a connection's peer; empty once it is closed. The kernel spells IPv6 canonically. */
export function peerAddress({ remoteAddress = '' }: { readonly remoteAddress?: string | undefined }): string {
  return unmapped(remoteAddress);
}

/**
 * Returns the address block that a single client is assumed to control, in one spelling. This is an IPv4 address, the
 * /64 of an IPv6 address, within which a host uses as many addresses as it likes (RFC 8981), or 127.0.0.0/8, all of which
 * every local program can use. An IPv4-mapped IPv6 address counts as the IPv4 address. Text that is not an address is a
 * block of its own.
 */
export function addressBlock(address: string): string {
  const [withoutZone = ''] = address.split('%', 1); // RFC 4007 §11
  const plain = unmapped(withoutZone);
  const family = isIP(plain);
  if (family === 4) return plain.startsWith('127.') ? '127.0.0.0/8' : plain;
  if (family === 0) return address;
  const network = expand(plain)
    .slice(0, 4)
    .map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}
