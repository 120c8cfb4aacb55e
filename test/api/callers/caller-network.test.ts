import test from 'ava';
import { callerNetwork, callerSite } from '../../../api/callers/caller-network.ts';

test('an address of IPv4 is a caller, in whatever way a socket or proxy writes it', (t) => {
  t.is(callerNetwork('192.0.2.1'), '192.0.2.1');
  t.is(callerNetwork('::ffff:192.0.2.1'), '192.0.2.1');
  t.not(callerNetwork('192.0.2.2'), '192.0.2.1');
});

test('addresses of one /64 are one caller, and those of another are not', (t) => {
  const network = callerNetwork('2001:db8:0:1::1');
  t.is(callerNetwork('2001:0db8:0000:0001:ffff:ffff:ffff:ffff'), network);
  t.not(callerNetwork('2001:db8:0:2::1'), network);
});

test('what is no address stays as it is', (t) => {
  t.is(callerNetwork('unknown'), 'unknown');
  t.is(callerNetwork(''), '');
});

test('all networks of a /48 are one site, and other networks are sites of their own', (t) => {
  const site = callerSite(callerNetwork('2001:db8:7:1::1'));
  t.is(site, '2001:db8:7::/48');
  t.is(callerSite(callerNetwork('2001:db8:7:ffff::2')), site);
  t.not(callerSite(callerNetwork('2001:db8:8:1::1')), site);
  t.is(callerSite(callerNetwork('::1')), '0:0:0::/48');
  for (const network of ['192.0.2.1', 'unknown', '']) t.is(callerSite(network), network);
});
