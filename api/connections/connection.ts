import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A caller's connection, as all parts of this folder see it. */
export interface Connection {
  readonly socket: Socket;
  /** Who shares connections with others: an address of IPv4, or the /64 of one of IPv6. */
  readonly network: string;
  /** The last one whose head has come; null before the first, and once it has come whole and was answered. */
  request: IncomingMessage | null;
  /** The response whose turn it is; null before the first request and between two of them. */
  response: ServerResponse | null;
  /**
   * Since when it is read again, where it was not for a while since the last head came: what is late then is not so by its
   * caller's fault. Infinity while it is not read; null where it was read all the time.
   */
  readAgainAtMs: number | null;
  /**
   * How many bytes had arrived in all at the last look that found new ones, and when that was; null before the first look at
   * a request.
   */
  heard: { readonly bytes: number; readonly atMs: number } | null;
  /** For the next head, where Node has given up timing it. */
  headTimer: NodeJS.Timeout | undefined;
}

export function createConnection(socket: Socket, network: string): Connection {
  return {
    socket,
    network,
    request: null,
    response: null,
    readAgainAtMs: null,
    heard: null,
    headTimer: undefined,
  };
}
