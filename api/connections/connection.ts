import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A client connection, as shared by all modules of this folder. */
export interface Connection {
  readonly socket: Socket;
  /** The IPv4 address or IPv6 /64 that connections are counted by. */
  readonly network: string;
  /** The last request whose head has arrived; null before the first, and once it is complete and has its response. */
  request: IncomingMessage | null;
  /** The current response; null before the first request and between two requests. */
  response: ServerResponse | null;
  /**
   * When reading resumed, if it was paused after the last head. If that makes the next head late, the client is not at
   * fault. Infinity while reading is paused; null if it was not paused.
   */
  readAgainAtMs: number | null;
  /**
   * Total bytes received at the last check that found new ones, and the time of that check; null before the first check
   * of a request.
   */
  lastReceived: { readonly bytes: number; readonly atMs: number } | null;
  /** Times the next head once Node has stopped doing so. */
  headTimer: NodeJS.Timeout | undefined;
}

export function createConnection(socket: Socket, network: string): Connection {
  return {
    socket,
    network,
    request: null,
    response: null,
    readAgainAtMs: null,
    lastReceived: null,
    headTimer: undefined,
  };
}
