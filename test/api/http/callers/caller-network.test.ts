import test from 'ava';
import { callerBlock, callerNetwork, callerSite } from '../../../../api/http/callers/caller-network.ts';

test('an IPv4 address is a network of its own, and all notations of the address give the same network', (t) => {
  t.is(callerNetwork('192.0.2.1'), '192.0.2.1');
  t.is(callerNetwork('::ffff:192.0.2.1'), '192.0.2.1');
  t.not(callerNetwork('192.0.2.2'), '192.0.2.1');
});

test('addresses in the same /64 are one network, and those in another /64 are not', (t) => {
  const network = callerNetwork('2001:db8:0:1::1');
  t.is(callerNetwork('2001:0db8:0000:0001:ffff:ffff:ffff:ffff'), network);
  t.not(callerNetwork('2001:db8:0:2::1'), network);
});

test('a value that is not an address is returned unchanged', (t) => {
  t.is(callerNetwork('unknown'), 'unknown');
  t.is(callerNetwork(''), '');
});

test('all networks in a /48 are one site, and other networks are separate sites', (t) => {
  const site = callerSite(callerNetwork('2001:db8:7:1::1'));
  t.is(site, '2001:db8:7::/48');
  t.is(callerSite(callerNetwork('2001:db8:7:ffff::2')), site);
  t.not(callerSite(callerNetwork('2001:db8:8:1::1')), site);
  t.is(callerSite(callerNetwork('::1')), '0:0:0::/48');
  for (const network of ['192.0.2.1', 'unknown', '']) t.is(callerSite(network), network);
});

test('the addresses of an IPv4 /24 are one block, and so are the networks of an IPv6 /48', (t) => {
  const block = callerBlock(callerNetwork('192.0.2.1'));
  t.is(block, '192.0.2.0/24');
  t.is(callerBlock(callerNetwork('::ffff:192.0.2.255')), block);
  t.not(callerBlock(callerNetwork('192.0.3.1')), block);
  t.is(callerBlock(callerNetwork('2001:db8:7:1::1')), '2001:db8:7::/48');
  for (const network of ['unknown', '']) t.is(callerBlock(network), network);
});
