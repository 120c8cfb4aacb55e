import { createReadStream } from 'node:fs';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import ipaddr from 'ipaddr.js';

/** The system's tables of TCP connections: of IPv4, and of IPv6, which has IPv4 as well where a socket serves both. */
const systemTables = { 4: '/proc/net/tcp', 16: '/proc/net/tcp6' };
/** At the most, so much of a table is looked at in one go; Linux gives a page at a time. */
const chunkBytes = 64 * 1024;

/**
 * How many bytes the system holds for each of these callers until they acknowledge them, where it says so, which Linux
 * does. It takes more from a process only once a third of what it holds has gone, which can be a megabyte: a slow caller
 * takes a minute to read that.
 * @param tables by the bytes of the addresses in them
 */
export async function readUnacknowledgedBytes(
  sockets: readonly Socket[],
  tables = systemTables,
): Promise<ReadonlyMap<Socket, number>> {
  const found = new Map<Socket, number>();
  for (const bytes of [4, 16] as const) {
    const wanted = new Map<string, Socket>();
    for (const socket of sockets) {
      const peer = describePeer(socket);
      if (peer?.addressBytes === bytes) wanted.set(peer.row, socket);
    }
    if (wanted.size > 0) await searchTable(tables[bytes], wanted, found);
  }
  return found;
}

/**
 * Looks for the rows of these callers. Most rows are others': connections that have ended stay in the table for a minute.
 * So it is read piece by piece, other work coming in between, and a row is taken apart only where its port is ours.
 */
async function searchTable(
  path: string,
  wanted: ReadonlyMap<string, Socket>,
  found: Map<Socket, number>,
): Promise<void> {
  const ports = new Set(Array.from(wanted.keys(), (row) => row.slice(0, 4)));
  /** Local port, peer, state (those in which bytes may wait), and what the peer has not acknowledged. */
  const row = new RegExp(
    `:(${[...ports].join('|')}) ([\\dA-F]+:[\\dA-F]{4}) (?:01|04|05|08|09|0B) ([\\dA-F]{8}):`,
    'g',
  );
  let rest = '';
  try {
    for await (const chunk of createReadStream(path, { encoding: 'latin1', highWaterMark: chunkBytes })) {
      const text = rest + String(chunk);
      const end = text.lastIndexOf('\n') + 1;
      for (const [, port, peer, bytes] of text.slice(0, end).matchAll(row)) {
        const socket = wanted.get(`${port} ${peer}`);
        if (socket !== undefined) found.set(socket, Number.parseInt(bytes!, 16));
      }
      rest = text.slice(end);
    }
  } catch {
    // Not on Linux, or without IPv6: nothing is known then.
  }
}

/** The row of a caller by our port and its address, as the table writes them; null where it has gone. */
function describePeer({
  localPort,
  remoteAddress,
  remotePort,
}: Socket): { row: string; addressBytes: number } | null {
  if (localPort === undefined || remoteAddress === undefined || remotePort === undefined) return null;
  // A zone is no part of it.
  const address = ipaddr.parse(remoteAddress.replace(/%.*$/, '')).toByteArray();
  const row = `${toHex(localPort)} ${toTableAddress(address)}:${toHex(remotePort)}`;
  return { row, addressBytes: address.length };
}

const toHex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

/** An address is written as the numbers of 32 bits that it is in memory. */
function toTableAddress(address: readonly number[]): string {
  const bytes = Buffer.from(address);
  if (endianness() === 'LE') bytes.swap32();
  return bytes.toString('hex').toUpperCase();
}
