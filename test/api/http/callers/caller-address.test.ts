import test from 'ava';
import { findCallerAddress } from '../../../../api/http/callers/caller-address.ts';

const socket = '192.0.2.10';

test('behind a proxy, the caller address is the last address in the forwarding header, without its port', (t) => {
  const addressByHeader = {
    '203.0.113.7': '203.0.113.7',
    '203.0.113.7:4711': '203.0.113.7',
    '198.51.100.1, 203.0.113.7': '203.0.113.7',
    'unknown,203.0.113.7 ': '203.0.113.7',
    '2001:DB8:0:0::7': '2001:db8::7',
    '[2001:db8::7]': '2001:db8::7',
    '[2001:db8::7]:4711': '2001:db8::7',
    '::ffff:203.0.113.7': '203.0.113.7',
    '::ffff:cb00:7107': '203.0.113.7',
    '[::ffff:203.0.113.7]:80': '203.0.113.7',
    'fe80::7%eth0': 'fe80::7',
  };
  for (const [header, address] of Object.entries(addressByHeader))
    t.is(findCallerAddress(socket, header), address, header);
});

test('the socket address is used if the proxy sends no valid address', (t) => {
  const invalidHeaders = [
    '',
    ' ',
    ',',
    '203.0.113.7,',
    'unknown',
    '_hidden',
    'localhost',
    '1',
    '127.1',
    '0x7f.0.0.1',
    '017.0.0.1',
    '203.0.113.256',
    '203.0.113.7:x',
    '203.0.113.7:',
    '[203.0.113.7]',
    '[::1',
    '::1]',
    '<script>alert(1)</script>',
    '203.0.113.7\t198.51.100.1',
    'ÿþ',
    '9'.repeat(10_000),
  ];
  for (const header of invalidHeaders) t.is(findCallerAddress(socket, header), socket, header);
});

test('without a proxy, the socket address is used in its canonical form', (t) => {
  t.is(findCallerAddress('::ffff:192.0.2.10'), socket);
  t.is(findCallerAddress(socket), socket);
  t.is(findCallerAddress('2001:db8:0:0::7'), '2001:db8::7');
  t.is(findCallerAddress('fe80::1%eth0'), 'fe80::1');
  // The connection is already closed.
  t.is(findCallerAddress(undefined), '');
});
