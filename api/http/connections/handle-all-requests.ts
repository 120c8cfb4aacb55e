import type { RequestListener, Server } from 'node:http';
import { handleClientErrors, type ClientErrorOptions } from './client-error.ts';
import { allowHalfOpen } from './node-internals.ts';

/**
 * Prevents Node from responding to, dropping or aborting requests by itself. Requests that it would reject get an error
 * in our format.
 */
export function handleAllRequests(
  server: Server,
  handle: RequestListener,
  options: ClientErrorOptions,
): void {
  // `checkHead` checks the Host header and the number of headers. Node would silently drop headers beyond its limit.
  Object.assign(server, { requireHostHeader: false, maxHeadersCount: 0 });
  // The middleware that reads the body sends `100 Continue` when it is ready for the body.
  server.on('checkContinue', handle);
  server.on('checkExpectation', handle);
  handleClientErrors(server, options);
  // A client may close its side after sending its request. `serveHalfClosed` detects whether it has disconnected.
  allowHalfOpen(server);
}
