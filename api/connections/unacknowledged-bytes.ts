import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import ipaddr from 'ipaddr.js';

const tables = ['/proc/net/tcp', '/proc/net/tcp6'];
/** Of each connection: its local port, its peer, and what the peer has not acknowledged. */
const row = /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+:[\dA-F]{4}) [\dA-F]{2} ([\dA-F]{8}):/gm;

/**
 * How many bytes the system holds for each of these callers until they acknowledge them, where it says so, which Linux
 * does. It takes more from a process only once a third of what it holds has gone, which can be a megabyte: a slow caller
 * takes a minute to read that.
 */
export async function readUnacknowledgedBytes(
  sockets: readonly Socket[],
): Promise<ReadonlyMap<Socket, number>> {
  const found = new Map<string, number>();
  for (const table of tables) {
    for (const [, port, peer, bytes] of (await readTable(table)).matchAll(row))
      found.set(`${port} ${peer}`, Number.parseInt(bytes!, 16));
  }
  const unacknowledged = new Map<Socket, number>();
  for (const socket of sockets) {
    const bytes = found.get(describePeer(socket));
    if (bytes !== undefined) unacknowledged.set(socket, bytes);
  }
  return unacknowledged;
}

async function readTable(path: string): Promise<string> {
  try {
    return await readFile(path, 'latin1');
  } catch {
    // Not on Linux, or without IPv6: nothing is known then.
    return '';
  }
}

function describePeer({ localPort, remoteAddress, remotePort }: Socket): string {
  if (localPort === undefined || remoteAddress === undefined || remotePort === undefined) return '';
  return `${toHex(localPort)} ${toTableAddress(remoteAddress)}:${toHex(remotePort)}`;
}

const toHex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

/** An address is written as the numbers of 32 bits that it is in memory. */
function toTableAddress(address: string): string {
  const bytes = Buffer.from(ipaddr.parse(address).toByteArray());
  if (endianness() === 'LE') bytes.swap32();
  return bytes.toString('hex').toUpperCase();
}
