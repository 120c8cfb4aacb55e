import { createReadStream } from 'node:fs';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import ipaddr from 'ipaddr.js';

/**
 * The system's TCP connection tables for IPv4 and IPv6. A socket that serves both has its IPv4 connections in the IPv6
 * table.
 */
const systemTables = { 4: '/proc/net/tcp', 16: '/proc/net/tcp6' };
/** Maximum number of bytes of a table parsed at a time. Linux returns one page per read. */
const chunkBytes = 64 * 1024;

/**
 * Reads how many bytes the operating system still buffers for each client, because the client has not acknowledged
 * them. Only Linux reports that. The operating system accepts more bytes only once a third of the buffered bytes has
 * been sent. That can be a megabyte, which takes a slow client a minute to read.
 * @param tables paths of the tables by the length of their addresses in bytes
 */
export async function readUnacknowledgedBytes(
  sockets: readonly Socket[],
  tables = systemTables,
): Promise<ReadonlyMap<Socket, number>> {
  const found = new Map<Socket, number>();
  for (const addressBytes of [4, 16] as const) {
    const socketsByRow = new Map<string, Socket>();
    for (const socket of sockets) {
      const peer = describePeer(socket);
      if (peer?.addressBytes === addressBytes) socketsByRow.set(peer.row, socket);
    }
    if (socketsByRow.size > 0) await searchTable(tables[addressBytes], socketsByRow, found);
  }
  return found;
}

/**
 * Finds the rows of these clients. Most rows belong to other connections: closed ones stay in the table for a minute.
 * So the table is read in pieces, with other work in between, and a row is parsed only if its port is ours.
 */
async function searchTable(
  path: string,
  socketsByRow: ReadonlyMap<string, Socket>,
  found: Map<Socket, number>,
): Promise<void> {
  const ports = new Set(Array.from(socketsByRow.keys(), (row) => row.slice(0, 4)));
  /** Local port, peer, state (those in which bytes may wait), and the bytes not acknowledged by the peer. */
  const row = new RegExp(
    `:(${[...ports].join('|')}) ([\\dA-F]+:[\\dA-F]{4}) (?:01|04|05|08|09|0B) ([\\dA-F]{8}):`,
    'g',
  );
  let remainder = '';
  try {
    for await (const chunk of createReadStream(path, { encoding: 'latin1', highWaterMark: chunkBytes })) {
      const text = remainder + String(chunk);
      const end = text.lastIndexOf('\n') + 1;
      for (const [, port, peer, bytes] of text.slice(0, end).matchAll(row)) {
        const socket = socketsByRow.get(`${port} ${peer}`);
        if (socket !== undefined) found.set(socket, Number.parseInt(bytes!, 16));
      }
      remainder = text.slice(end);
    }
  } catch {
    // There is no such table outside Linux or without IPv6.
  }
}

/** `fe80::1%eth0` becomes `fe80::1`. */
const withoutZone = (address: string): string => address.split('%', 1)[0]!;

/** The client's row key, from our port and its address in the table's format; null if it has disconnected. */
function describePeer({
  localPort,
  remoteAddress,
  remotePort,
}: Socket): { row: string; addressBytes: number } | null {
  if (localPort === undefined || remoteAddress === undefined || remotePort === undefined) return null;
  const address = ipaddr.parse(withoutZone(remoteAddress)).toByteArray();
  const row = `${toHex(localPort)} ${toTableAddress(address)}:${toHex(remotePort)}`;
  return { row, addressBytes: address.length };
}

const toHex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

/** The table contains addresses as 32-bit integers in host byte order. */
function toTableAddress(address: readonly number[]): string {
  const bytes = Buffer.from(address);
  if (endianness() === 'LE') bytes.swap32();
  return bytes.toString('hex').toUpperCase();
}
