import ipaddr from 'ipaddr.js';

const ipv6NetworkParts = 4;
const ipv6SiteParts = 3;
const ipv4BlockOctets = 3;

/**
 * Returns the network that limits apply to if there is no account: an IPv4 address, or an IPv6 /64, because every
 * customer has a whole /64 of addresses. Returns text that is not an address, such as that of a closed connection,
 * unchanged.
 */
export function callerNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? nameNetwork(parsed, ipv6NetworkParts) : parsed.toString();
}

/**
 * Returns the /48 of an IPv6 network, because one customer can have a whole /48 (RFC 6177), which is 65 536 networks.
 * Returns all other networks unchanged.
 * @param network as returned by `callerNetwork`
 */
export function callerSite(network: string): string {
  const [address = ''] = network.split('/');
  return ipaddr.IPv6.isValid(address) ? nameNetwork(ipaddr.IPv6.parse(address), ipv6SiteParts) : network;
}

/**
 * Returns the block of addresses around a network, in which one person can get many: the /48 of an IPv6 network, the /24
 * of an IPv4 address. Returns text that is not a network unchanged.
 * @param network as returned by `callerNetwork`
 */
export function callerBlock(network: string): string {
  if (!ipaddr.IPv4.isValidFourPartDecimal(network)) return callerSite(network);
  return `${network.split('.').slice(0, ipv4BlockOctets).join('.')}.0/24`;
}

function nameNetwork({ parts }: ipaddr.IPv6, count: number): string {
  const groups = parts.slice(0, count).map((part) => part.toString(16));
  return `${groups.join(':')}::/${count * 16}`;
}
