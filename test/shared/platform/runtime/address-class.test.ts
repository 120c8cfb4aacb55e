import test from 'ava';
import fc from 'fast-check';
import { isLoopbackHost, isPublicAddress } from '../../../../shared/platform/runtime/address-class.ts';

/**
 * First and last addresses of the ranges in IANA's two special-purpose registries, and others that no host may have.
 */
const nonPublicAddresses: Record<string, readonly string[]> = {
  'this network': ['0.0.0.0', '0.0.0.1', '0.255.255.255'],
  'private use': [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.0',
    '192.168.255.255',
  ],
  'carrier-grade NAT': ['100.64.0.0', '100.100.100.200', '100.127.255.255'],
  loopback: ['127.0.0.0', '127.0.0.1', '127.255.255.255'],
  'link-local': ['169.254.0.0', '169.254.169.254', '169.254.170.2', '169.254.255.255'],
  'IETF protocols': ['192.0.0.0', '192.0.0.192', '192.0.0.255'],
  documentation: ['192.0.2.0', '192.0.2.255', '198.51.100.1', '203.0.113.255'],
  '6to4 relays': ['192.88.99.0', '192.88.99.255'],
  'AS112 and AMT': ['192.31.196.1', '192.52.193.1', '192.175.48.1'],
  benchmarking: ['198.18.0.0', '198.19.255.255'],
  multicast: ['224.0.0.0', '239.255.255.255'],
  reserved: ['240.0.0.0', '255.255.255.254'],
  broadcast: ['255.255.255.255'],
  "Azure's host agent": ['168.63.129.16'],
  'unspecified and loopback, IPv6': ['::', '::1'],
  'IPv4-compatible': ['::127.0.0.1', '::8.8.8.8', '::a9fe:a9fe'],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::FFFF:a9fe:a9fe'],
  'IPv4-translated': ['::ffff:0:7f00:1', '::ffff:0:808:808'],
  NAT64: ['64:ff9b::a9fe:a9fe', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '64:ff9b:1:ffff::a00:1'],
  discard: ['100::', '100::ffff:ffff:ffff:ffff', '100:0:0:1::1'],
  Teredo: ['2001::', '2001:0:7f00:1::', '2001:0:ffff:ffff::'],
  'IETF protocols, IPv6': [
    '2001:1::1',
    '2001:2::1',
    '2001:3::1',
    '2001:4:112::1',
    '2001:10::1',
    '2001:20::1',
    '2001:30::1',
    '2001:1ff:ffff::',
  ],
  'documentation, IPv6': ['2001:db8::', '2001:db8:ffff:ffff::', '3fff::1', '3fff:fff:ffff::'],
  '6to4': ['2002:7f00:1::', '2002:a9fe:a9fe::1', '2002:808:808::1'],
  'AS112, IPv6': ['2620:4f:8000::1'],
  'segment routing': ['5f00::1'],
  'unique local': ['fc00::', 'fd00:ec2::254', 'fd20:ce::254', 'fdff:ffff::1'],
  'link-local, IPv6': ['fe80::', 'fe80::1', 'febf:ffff::1'],
  'site-local': ['fec0::', 'fec0::1', 'feff:ffff::1'],
  'multicast, IPv6': ['ff00::', 'ff02::1', 'ff0e::1'],
  'not assigned': ['4000::1', '8000::1', 'e000::1', '1::1', '200::1', '400::1'],
};

const publicAddresses: readonly string[] = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.15',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2001:4860:4860::8888',
  '2a00:1450:4001::1',
  '2003::1',
];

for (const [name, addresses] of Object.entries(nonPublicAddresses)) {
  test(`not public: ${name}`, (t) => {
    for (const address of addresses) t.false(isPublicAddress(address), address);
  });
}

test('public addresses are public, including those next to the special ranges', (t) => {
  for (const address of publicAddresses) t.true(isPublicAddress(address), address);
});

test('an address with a zone index is not public, nor is text that is not an address', (t) => {
  const texts = [
    '',
    'localhost',
    'pictures.test',
    '1.1.1',
    '16843009',
    '0x1.1.1.1',
    '01.1.1.1',
    '1.1.1.1 ',
    '1.1.1.1/8',
    '[2606::1]',
  ];
  for (const text of [...texts, '2606:4700::1%eth0', 'fe80::1%1']) t.false(isPublicAddress(text), text);
});

test('an IPv6 address that embeds an IPv4 address is never public, even if the IPv4 address is', (t) => {
  const octet = fc.integer({ min: 0, max: 255 });
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
      const v4 = octets.join('.');
      const hex = Buffer.from(octets).toString('hex');
      const parts = `${hex.slice(0, 4)}:${hex.slice(4)}`;
      const carriers = [
        `::${v4}`,
        `::ffff:${v4}`,
        `::ffff:0:${v4}`,
        `64:ff9b::${v4}`,
        `2002:${parts}::1`,
        `2001:0:${parts}::1`,
      ];
      for (const carrier of carriers) t.false(isPublicAddress(carrier), carrier);
    }),
    { numRuns: 300 },
  );
});

test('the hosts of this machine are known by name or address, and not by what a name begins with', (t) => {
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'])
    t.true(isLoopbackHost(host), host);
  for (const host of ['127.example.com', 'localhost.example.com', '10.0.0.1', '::2', 'redis', ''])
    t.false(isLoopbackHost(host), host);
});
