import { BlockList, isIP } from 'node:net';

/**
 * Addresses that are not on the public internet: the special-purpose registries of IANA (RFC 6890) and multicast. Of
 * IPv6, everything outside 2000::/3 counts, which includes the metadata services of clouds (fd00:ec2::254) and the
 * translation prefix 64:ff9b::/96 (RFC 6052). An IPv4-mapped address is checked as IPv4 by {@link BlockList}: it must
 * not be covered by a block here, because a block of mapped addresses would cover all of IPv4.
 */
const SPECIAL_BLOCKS = [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
  '::/96 ::ffff:0:0:0/96 64::/16 100::/8 200::/7 400::/6 800::/5 1000::/4 4000::/2 8000::/1',
  // The metadata service of Azure, though it is no special-purpose address.
  '168.63.129.16/32',
  // Within 2000::/3: Teredo and other protocols, documentation, 6to4.
  '2001::/23 2001:db8::/32 2002::/16 3fff::/20',
].flatMap((line) => line.split(' '));

const special = new BlockList();
for (const block of SPECIAL_BLOCKS) {
  const [network = '', bits] = block.split('/');
  special.addSubnet(network, Number(bits), isIP(network) === 4 ? 'ipv4' : 'ipv6');
}

/** Returns whether an IP address can belong to a host on the public internet. False for text that is no IP address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && !special.check(address, family === 4 ? 'ipv4' : 'ipv6');
}
