import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressBlocks, addressBlock, canonicalAddress, isAddressOrBlock } from '../../src/formats/address-block.ts';

describe('an address is counted', () => {
  it.each([
    ['IPv4: alone', '203.0.113.9', '203.0.113.9'],
    ['IPv6: with its /64', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['a short form as the long one', '2001:db8::7', '2001:db8:0:0::/64'],
    ['leading zeros and capitals', '2001:0DB8:0000:000A:0:0:0:1', '2001:db8:0:a::/64'],
    ['a gap at the end', '2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['a gap at the start', '::1', '0:0:0:0::/64'],
    ['a gap of one group', '2001:db8:1::4:5:6:7', '2001:db8:1:0::/64'],
    ['a gap of one group at the end', '1:2:3:4:5:6:7::', '1:2:3:4::/64'],
    ['nothing but a gap', '::', '0:0:0:0::/64'],
    ['with a zone as without', 'fe80:1:2:3:4:5:6:7%eth0:1', 'fe80:1:2:3::/64'],
    ['an IPv4 end belongs to the last groups', '64:ff9b::203.0.113.9', '64:ff9b:0:0::/64'],
    ['mapped IPv4 as IPv4', '::ffff:203.0.113.9', '203.0.113.9'],
    ['mapped IPv4 in hexadecimal as IPv4', '::FFFF:cb00:7109', '203.0.113.9'],
    ['mapped IPv4 at full length as IPv4', '0:0:0:0:0:ffff:cb00:7109', '203.0.113.9'],
    ['what only looks mapped as IPv6', '1::ffff:cb00:7109', '1:0:0:0::/64'],
    ['every loopback address as one', '127.1.2.3', '127.0.0.0/8'],
    ['mapped loopback too', '::ffff:127.0.0.9', '127.0.0.0/8'],
    ['the block of loopback addresses as itself', '127.0.0.0/8', '127.0.0.0/8'],
    ['what is no address by itself', 'unknown', 'unknown'],
    ['nothing by itself', '', ''],
  ])('%s', (_, address, block) => {
    expect(addressBlock(address)).toBe(block);
  });
});

it('every spelling of an IPv6 address is in the same block, and no other block is', () => {
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
  const spelling = fc.record({ padded: fc.boolean(), capitals: fc.boolean(), gap: fc.nat(7) });
  const spell = (groups: number[], { padded, capitals, gap }: { padded: boolean; capitals: boolean; gap: number }) => {
    const parts = groups.map((value) => value.toString(16).padStart(padded ? 4 : 1, '0'));
    let end = gap;
    while (end < 8 && groups[end] === 0) end++;
    const text = end > gap ? `${parts.slice(0, gap).join(':')}::${parts.slice(end).join(':')}` : parts.join(':');
    return capitals ? text.toUpperCase() : text;
  };
  const addresses = fc.array(group, { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(addresses, addresses, spelling, spelling, ([...one], [...other], a, b) => {
      one[0] = 0x2001; // not a mapped IPv4 address
      const sameBlock = [...one.slice(0, 4), ...other.slice(4)];
      expect(addressBlock(spell(one, a))).toBe(addressBlock(spell(sameBlock, b)));
      const otherBlock = [...one.slice(0, 3), ((one[3] ?? 0) + 1) % 0x1_0000, ...one.slice(4)];
      expect(addressBlock(spell(one, a))).not.toBe(addressBlock(spell(otherBlock, b)));
    }),
  );
});

const prefixed = (addresses: fc.Arbitrary<string>, bits: number) =>
  fc
    .tuple(addresses, fc.option(fc.nat(bits)))
    .map(([address, prefix]) => address + (prefix === null ? '' : `/${prefix}`));
/** Few different bytes, so that many addresses share their beginning. */
const ipv4 = fc.array(fc.constantFrom(0, 10, 127, 255), { minLength: 4, maxLength: 4 }).map((bytes) => bytes.join('.'));
const ipv6 = fc
  .array(fc.constantFrom('0', 'ffff', 'fe80', '8000'), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.join(':'));
const anyAddress = fc.oneof(
  ipv4,
  ipv6,
  ipv4.map((address) => `::ffff:${address}`),
);
const anyEntry = fc.oneof(
  prefixed(ipv4, 32),
  prefixed(ipv6, 128),
  prefixed(
    ipv4.map((end) => `::ffff:${end}`),
    128,
  ),
);

describe('a list of addresses and blocks', () => {
  it('has exactly the addresses that the BlockList of Node.js has', () => {
    const property = fc.property(fc.array(anyEntry, { maxLength: 4 }), anyAddress, (entries, address) => {
      const known = new BlockList();
      for (const entry of entries) {
        const [base = '', prefix] = entry.split('/');
        const family = isIP(base) === 6 ? 'ipv6' : 'ipv4';
        if (prefix === undefined) known.addAddress(base, family);
        else known.addSubnet(base, Number(prefix), family);
      }
      const canonical = canonicalAddress(address);
      const expected = known.check(canonical, isIP(canonical) === 6 ? 'ipv6' : 'ipv4');
      expect(entries.every(isAddressOrBlock)).toBe(true);
      expect(new AddressBlocks(entries).has(canonical)).toBe(expected);
    });
    fc.assert(property, { numRuns: 2000 });
  });

  it('includes another list only if it has every address of it', () => {
    const property = fc.property(
      fc.array(anyEntry, { maxLength: 3 }),
      anyEntry,
      anyAddress,
      (wide, narrow, address) => {
        const [outer, inner] = [new AddressBlocks(wide), new AddressBlocks([narrow])];
        const canonical = canonicalAddress(address);
        if (outer.includes(inner) && inner.has(canonical)) expect(outer.has(canonical)).toBe(true);
      },
    );
    fc.assert(property, { numRuns: 2000 });
    expect(new AddressBlocks(['10.0.0.0/8']).includes(new AddressBlocks(['::ffff:10.1.0.0/112', '10.9.9.9']))).toBe(
      true,
    );
    expect(new AddressBlocks(['10.0.0.0/8']).includes(new AddressBlocks(['10.0.0.0/7']))).toBe(false);
  });

  it.each(['', 'unknown', '10.0.0', '10.0.0.1.5'])('has no text that is not an address: %j', (text) => {
    expect(new AddressBlocks(['0.0.0.0/0', '::/0']).has(text)).toBe(false);
  });
});
