import test from 'ava';
import { callerNetwork } from '../../../api/callers/caller-network.ts';

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
