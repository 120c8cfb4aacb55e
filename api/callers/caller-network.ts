import ipaddr from 'ipaddr.js';

const ipv6NetworkParts = 4;
const ipv6SiteParts = 3;

/**
 * Who shares with others where there is no account: an address of IPv4, and of IPv6 the /64 that it lies in, as any
 * customer has a whole one to take addresses from. What is no address, as of a connection that is gone, stays as it is.
 */
export function callerNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? nameNetwork(parsed, ipv6NetworkParts) : parsed.toString();
}

/**
 * The /48 that a network of IPv6 lies in, because one customer can have that much (RFC 6177), which is 65 536 networks. All
 * other networks stay as they are.
 * @param network as `callerNetwork` names it
 */
export function callerSite(network: string): string {
  const [address = ''] = network.split('/');
  return ipaddr.IPv6.isValid(address) ? nameNetwork(ipaddr.IPv6.parse(address), ipv6SiteParts) : network;
}

function nameNetwork({ parts }: ipaddr.IPv6, count: number): string {
  const kept = parts.slice(0, count).map((part) => part.toString(16));
  return `${kept.join(':')}::/${count * 16}`;
}
