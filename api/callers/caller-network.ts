import ipaddr from 'ipaddr.js';

const ipv6NetworkParts = 4;
const ipv6SiteParts = 3;

/**
 * The unit that shares limits without an account: an IPv4 address or an IPv6 /64, because any customer has a whole /64
 * to take addresses from. Text that is not an address, such as that of a closed connection, is returned unchanged.
 */
export function callerNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? nameNetwork(parsed, ipv6NetworkParts) : parsed.toString();
}

/**
 * The /48 of an IPv6 network, because one customer can have that much (RFC 6177), which is 65 536 networks. All other
 * networks are returned unchanged.
 * @param network as returned by `callerNetwork`
 */
export function callerSite(network: string): string {
  const [address = ''] = network.split('/');
  return ipaddr.IPv6.isValid(address) ? nameNetwork(ipaddr.IPv6.parse(address), ipv6SiteParts) : network;
}

function nameNetwork({ parts }: ipaddr.IPv6, count: number): string {
  const groups = parts.slice(0, count).map((part) => part.toString(16));
  return `${groups.join(':')}::/${count * 16}`;
}
