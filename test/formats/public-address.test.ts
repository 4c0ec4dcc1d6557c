import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../src/formats/public-address.ts';
import { isWebhookUrl } from '../../src/formats/webhook-url.ts';

const PUBLIC = [
  '1.1.1.1',
  '9.255.255.255',
  '100.63.255.255',
  '168.63.129.17',
  '100.128.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450::1',
  '::ffff:8.8.8.8',
];

const SPECIAL = {
  unspecified: ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:7f00:0001'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '::ffff:10.0.0.1', '::ffff:a00:1'],
  'link-local and metadata': [
    '169.254.169.254',
    '168.63.129.16',
    '::ffff:168.63.129.16',
    '::ffff:169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
  ],
  'unique-local and metadata': ['fc00::1', 'fd00:ec2::254', 'fdff::1', 'fec0::1'],
  'carrier-grade NAT': ['100.64.0.1', '100.100.100.200', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  'reserved and broadcast': ['240.0.0.1', '255.255.255.255', '192.0.0.192', '198.18.0.1', '4000::1', '100::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  'IPv4 in IPv6': [
    '::127.0.0.1',
    '::a00:1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2002:a9fe:a9fe::1',
    '2001::1',
  ],
  'no address': ['', 'localhost', '127.1', '0x7f000001', '[::1]', '1.1.1.1:80'],
};

describe('a public address', () => {
  test.each(PUBLIC)('%s', (address) => expect(isPublicAddress(address)).toBe(true));

  test.each(Object.entries(SPECIAL))('is not one for %s', (_, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });
});

describe('a URL for notices', () => {
  test.each([
    'https://hooks.example/tollgate',
    'https://hooks.example:8443/a?b=c',
    'https://hooks.example/@team\\a',
    'https://hooks.example?to=a@b.example',
    'HTTPS://1.1.1.1/',
    'https://[2606:4700::1111]/x',
  ])('%s', (url) => expect(isWebhookUrl(url)).toBe(true));

  test.each([
    'http://hooks.example/',
    'ftp://hooks.example/',
    'https:hooks.example',
    'https://user@hooks.example/',
    'https://user:password@hooks.example/',
    // Parsers disagree about the host of these.
    'https://@hooks.example/',
    'https://:@hooks.example/',
    'https://hooks.example\\@other.example/',
    'https://hooks.example\\/',
    'https:\\\\hooks.example/',
    'https:////hooks.example/',
    'https://hooks.example?@other.example/#',
    'https://hooks.example/#part',
    'https://hooks.example/ x',
    'https://hooks.example/\n',
    'https://hooks.example:99999/',
    `https://hooks.example/${'a'.repeat(2048)}`,
    'https://localhost/',
    'https://LOCALHOST./',
    // Each spelling of an IPv4 address that URL parsers know.
    'https://127.0.0.1/',
    'https://127.1/',
    'https://127.0.0.1./',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0177.0.0.1/',
    'https://017700000001/',
    'https://0/',
    'https://①②⑦.0.0.1/',
    'https://%31%32%37.0.0.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[fd00:ec2::254]/',
    '',
    'hooks.example',
  ])('is not %s', (url) => expect(isWebhookUrl(url)).toBe(false));

  test('may be private and without TLS where the operator allows it', () => {
    const isAllowed = (url: string) => isWebhookUrl(url, { allowPrivate: true });
    expect(['http://127.0.0.1:8080/', 'https://10.0.0.1/'].every(isAllowed)).toBe(true);
    const refused = ['ftp://10.0.0.1/', 'http://user@10.0.0.1/', 'http://@10.0.0.1/', 'http://10.0.0.1\\@10.0.0.2/'];
    expect(refused.some(isAllowed)).toBe(false);
  });
});
