import { isIP } from 'node:net';

/** An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) in the spelling of the URL standard. */
const MAPPED = /^::ffff:([\da-f]+):([\da-f]+)$/;

/**
 * Returns an address in the one spelling that logs and comparisons use: IPv6 has several, a zone is left out, and an
 * IPv4-mapped address is the IPv4 address.
 */
export function canonicalAddress(address: string): string {
  const [withoutZone = ''] = address.split('%', 1); // RFC 4007 §11
  if (isIP(withoutZone) !== 6) return withoutZone;
  const canonical = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const groups = MAPPED.exec(canonical)?.slice(1) ?? [];
  const bytes = groups.map((group) => Number.parseInt(group, 16)).flatMap((value) => [value >> 8, value & 0xff]);
  return bytes.length > 0 ? bytes.join('.') : canonical;
}

/**
 * Returns the canonical address of a connection's peer; empty once it is closed. The kernel spells IPv6 canonically, and
 * a dual-stack socket reports an IPv4 peer as `::ffff:a.b.c.d`.
 */
export function peerAddress({ remoteAddress = '' }: { readonly remoteAddress?: string | undefined }): string {
  return remoteAddress.replace(/^::ffff:(?=[\d.]+$)/, '');
}

/**
 * Returns the address block that a single client is assumed to control, in one spelling. This is an IPv4 address, the
 * /64 of an IPv6 address, within which a host uses as many addresses as it likes (RFC 8981), or 127.0.0.0/8, all of which
 * every local program can use. An IPv4-mapped IPv6 address counts as the IPv4 address. Text that is not an address is a
 * block of its own.
 */
export function addressBlock(address: string): string {
  const plain = canonicalAddress(address);
  const family = isIP(plain);
  if (family === 4) return plain.startsWith('127.') ? '127.0.0.0/8' : plain;
  if (family === 0) return address;
  const present = plain.split(':').filter((group) => group !== '').length;
  const expanded = plain.replace('::', `:${'0:'.repeat(8 - present)}`).replace(/^:/, '');
  return `${expanded.split(':', 4).join(':')}::/64`;
}
