import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A caller's socket, as the parts of this folder see it. */
export interface Connection {
  readonly socket: Socket;
  /** Who shares connections with others: an address of IPv4, or the /64 of one of IPv6. */
  readonly network: string;
  /** The response that is made or sent; null before the first request and between two of them. */
  response: ServerResponse | null;
}
