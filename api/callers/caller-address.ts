import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** IPv6 with a zone and a port, and more than that. */
const longestAddress = 100;

/** As some proxies write it: with the port, and IPv6 in brackets. */
const withPort = /^(?:\[([^\]]*:[^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/;

/**
 * The address that a request came from. The last one in `X-Forwarded-For` counts: the proxy in front of us added it, and
 * those before it may be invented by the caller. If it is no address, the address of the connection counts.
 * @param socketAddress undefined where the connection is gone already
 * @param forwardedFor the header, where the proxy is trusted to set it
 */
export function findCallerAddress(socketAddress: string | undefined, forwardedFor = ''): string {
  const last = forwardedFor.slice(forwardedFor.lastIndexOf(',') + 1).trim();
  return readAddress(last) ?? readAddress(socketAddress ?? '') ?? '';
}

/** In the one form that an address has: IPv4 as such also where it is written within IPv6, without port and zone. */
function readAddress(text: string): string | null {
  if (text === '' || text.length > longestAddress) return null;
  const match = withPort.exec(text);
  const address = match === null ? text : (match[1] ?? match[2]!);
  if (isIP(address) === 0) return null;
  return address.includes(':') ? ipaddr.process(address.replace(/%.*$/, '')).toString() : address;
}
