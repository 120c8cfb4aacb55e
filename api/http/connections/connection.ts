import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** State of a client connection, shared by all modules of this folder. */
export interface Connection {
  readonly socket: Socket;
  /** The IPv4 address or IPv6 /64 that connection limits apply to. */
  readonly network: string;
  /**
   * The last request whose head has arrived; null before the first request, and after a complete request has its
   * response.
   */
  request: IncomingMessage | null;
  /** The current response; null before the first request and between two requests. */
  response: ServerResponse | null;
  /**
   * When this process resumed reading, if it paused reading after the last request head. Such a pause may delay the
   * next head. Infinity during the pause; null if there was none.
   */
  readingResumedAtMs: number | null;
  /**
   * Set by each check for a silent body that finds new bytes: the total bytes received and the time. Null before the
   * first check of a request.
   */
  lastReceived: { readonly bytes: number; readonly atMs: number } | null;
  /** Time limit for the next request head, after Node has reported it late and no longer times it. */
  headTimer: NodeJS.Timeout | undefined;
  /** Whether the connection closes after the current response. */
  isClosing: boolean;
}

export function createConnection(socket: Socket, network: string): Connection {
  return {
    socket,
    network,
    request: null,
    response: null,
    readingResumedAtMs: null,
    lastReceived: null,
    headTimer: undefined,
    isClosing: false,
  };
}
