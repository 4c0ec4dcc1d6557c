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

/** Returns `a.b.c.d` for `::ffff:a.b.c.d`, as a dual-stack socket reports an IPv4 peer (RFC 4291 §2.5.5.2). */
export function unmapped(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

/**
 * Returns the address block that a single client is assumed to control, in one spelling. This is an IPv4 address, or
 * the /64 of an IPv6 address, within which a host uses as many addresses as it likes (RFC 8981). An IPv4-mapped IPv6
 * address yields the IPv4 address (RFC 4291 §2.5.5.2). Text that is not an address is a block of its own.
 */
export function addressBlock(address: string): string {
  if (isIP(address) !== 6) return address;
  const [withoutZone = ''] = address.split('%', 1); // RFC 4007 §11
  const groups = expand(withoutZone);
  const [, , , , , sixth, seventh = 0, eighth = 0] = groups;
  if (sixth === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [seventh >> 8, seventh & 0xff, eighth >> 8, eighth & 0xff].join('.');
  }
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}
