import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Addresses that the registries count as public and that machines inside a cloud answer to all the same: Azure's
 * host agent, which hands out a virtual machine's certificates and settings.
 */
const internalDespiteTheRegistries: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Of IPv6, the registries have given out nothing but 2000::/3 for hosts. */
const globalUnicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/**
 * Whether an IP address is one of the public internet: anything that is not known to be is not. IPv6 addresses that
 * carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are never public, whatever they carry: the machine that unpacks
 * them may stand in our own network, and public hosts are reached by their own addresses.
 */
export function isPublicAddress(address: string): boolean {
  // The library reads more spellings than sockets do; what a socket would read in another way must not pass. A zone
  // names an interface of this machine, which no public address needs.
  if (isIP(address) === 0 || address.includes('%')) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  // The library calls what it does not know unicast, such as the old `::127.0.0.1`.
  if (parsed.kind() === 'ipv6') return parsed.match(globalUnicast);
  return !internalDespiteTheRegistries.has(parsed.toString());
}
