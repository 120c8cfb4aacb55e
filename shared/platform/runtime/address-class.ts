// decision 0019
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Addresses that are public according to the registries but reachable only inside a cloud: Azure's host agent, which
 * serves a virtual machine's certificates and settings.
 */
const internalAddresses: ReadonlySet<string> = new Set(['168.63.129.16']);

/** The only IPv6 block the registries have assigned to hosts is 2000::/3. */
const globalUnicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/**
 * Returns whether an IP address is known to be on the public internet. IPv6 addresses that embed an IPv4 address
 * (mapped, NAT64, 6to4, Teredo) never count as public: the machine that unpacks them may be in our network, and public
 * hosts are reachable without them.
 */
export function isPublicAddress(address: string): boolean {
  // The library accepts more spellings than sockets do. Reject anything that a socket might read differently. A zone
  // specifies an interface of this machine, which a public address does not need.
  if (isIP(address) === 0 || address.includes('%')) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  // The library classifies addresses it does not know as unicast, such as the old `::127.0.0.1`.
  if (parsed.kind() === 'ipv6') return parsed.match(globalUnicast);
  return !internalAddresses.has(parsed.toString());
}

/** Whether connections to a URL's host do not leave this machine. A name other than `localhost` is not looked up. */
export function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return host === 'localhost' || (isIP(host) !== 0 && ipaddr.parse(host).range() === 'loopback');
}

/** Whether an address of a connection is this machine's own. */
export function isLoopbackAddress(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.process(address.split('%', 1)[0]!).range() === 'loopback';
}
