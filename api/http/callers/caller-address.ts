import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Longer than any IPv6 address with a zone and a port. */
const maxAddressLength = 100;

/** Some proxies add the port, and put IPv6 in brackets. */
const withPort = /^(?:\[([^\]:]*:[^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/;

/**
 * Finds the address that a request came from. Uses the last address in `X-Forwarded-For`: the proxy in front of this
 * server added it, and the client may have forged those before it. If it is not an address, uses the address of the
 * connection.
 * @param socketAddress undefined if the connection is already closed
 * @param forwardedFor the header, if the proxy is trusted to set it
 */
export function findCallerAddress(socketAddress: string | undefined, forwardedFor = ''): string {
  const last = forwardedFor.slice(forwardedFor.lastIndexOf(',') + 1).trim();
  return readAddress(last) ?? readAddress(socketAddress ?? '') ?? '';
}

/** Normalizes an address: IPv4 mapped into IPv6 becomes IPv4; port and zone are removed. */
function readAddress(text: string): string | null {
  if (text === '' || text.length > maxAddressLength) return null;
  const match = withPort.exec(text);
  const address = match === null ? text : (match[1] ?? match[2]!);
  if (isIP(address) === 0) return null;
  return address.includes(':') ? ipaddr.process(address.split('%', 1)[0]!).toString() : address;
}
