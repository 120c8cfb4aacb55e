import { AppError } from '../../../shared/contract/errors.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { createTimeOrderedId } from '../../../shared/platform/runtime/time-ordered-id.ts';
import { findCallerAddress } from '../callers/caller-address.ts';
import { wasResetForUnreadResponse } from '../callers/unread-callers.ts';
import { logAccess } from '../responses/access-line.ts';
import type { RequestMetrics } from '../responses/request-metrics.ts';
import type { ApiMiddleware } from '../request/context.ts';
import { normalizeTarget } from '../request/normalize-target.ts';

/** Shared by all requests: creating an error for each would capture a stack that nobody reads. */
const responseClosed = new AppError('job_cancelled');

export interface RequestContextOptions {
  readonly trustsProxy?: boolean;
  readonly metrics?: Pick<RequestMetrics, 'note'>;
}

/**
 * Assigns the request id, the abort signal and the caller's address, normalizes the target, and writes the access line
 * when the response is done.
 * @param trustsProxy whether to take the caller's address from the proxy in front of this server
 */
export function requestContext(
  log: Logger,
  { trustsProxy = false, metrics }: RequestContextOptions = {},
): ApiMiddleware {
  return async (context, next) => {
    const startedAtMs = performance.now();
    // Must come first, because any code that reads the path uses a URL parser that throws on invalid hosts.
    context.url = normalizeTarget(context.url);
    const requestId = createTimeOrderedId();
    context.state.requestId = requestId;
    context.set('x-request-id', requestId);
    const forwardedFor = trustsProxy ? context.get('x-forwarded-for') : '';
    const closed = new AbortController();
    context.state.signal = closed.signal;
    context.request.ip = findCallerAddress(context.socket.remoteAddress, forwardedFor);
    context.res.once('close', () => {
      closed.abort(responseClosed);
      context.state.meter?.report();
      const { method, path, status, state } = context;
      const isWhole = context.res.writableFinished || state.isResponseSent === true;
      const { operation, model, error } = state;
      const durationMs = performance.now() - startedAtMs;
      metrics?.note({ operation, model, status, error, isWhole, durationMs });
      logAccess(log, {
        requestId,
        method,
        path,
        status: isWhole ? status : 499,
        startedAtMs,
        error: state.error,
        reason:
          !isWhole && wasResetForUnreadResponse(context.req.socket)
            ? 'client did not read the response'
            : undefined,
      });
    });
    await next();
  };
}

/** Rejects paths with a doubled slash. They come from a wrong base URL, and serving them would hide the mistake. */
export const rejectDoubledSlash: ApiMiddleware = async (context, next) => {
  if (context.path.includes('//')) {
    throw new AppError('not_found', {
      message: `There is no endpoint ${shorten(context.path)}: the path contains a double slash. Check the base URL.`,
    });
  }
  await next();
};
