import ipaddr from 'ipaddr.js';

const ipv6NetworkParts = 4;

/**
 * Who shares with others where there is no account: an address of IPv4, and of IPv6 the /64 that it lies in, as any
 * customer has a whole one to take addresses from. What is no address, as of a connection that is gone, stays as it is.
 */
export function callerNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const parts = parsed.parts.slice(0, ipv6NetworkParts).map((part) => part.toString(16));
  return `${parts.join(':')}::/64`;
}
