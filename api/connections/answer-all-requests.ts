import type { RequestListener, Server } from 'node:http';
import { answerClientErrors, type ClientErrorOptions } from './client-error.ts';
import { allowHalfOpen } from './node-internals.ts';

/** Leaves no request for Node to answer, drop or abort by itself: what it would refuse is refused in our own form. */
export function answerAllRequests(
  server: Server,
  handle: RequestListener,
  options: ClientErrorOptions,
): void {
  // `checkHead` looks at hosts and counts headers: Node would drop those beyond a bound without a word.
  Object.assign(server, { requireHostHeader: false, maxHeadersCount: 0 });
  // `100 Continue` is sent by the step that reads the body, once it is wanted.
  server.on('checkContinue', handle);
  server.on('checkExpectation', handle);
  answerClientErrors(server, options);
  // `answerHalfClosed` tells which of those callers have gone.
  allowHalfOpen(server);
}
