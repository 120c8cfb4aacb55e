import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A caller's socket, as the parts of this folder see it. */
export interface Connection {
  readonly socket: Socket;
  /** The response that is made or sent; null before the first request and between two of them. */
  response: ServerResponse | null;
}
