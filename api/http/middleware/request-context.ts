import { AppError } from '../../../shared/contract/errors.ts';
import { maskSecrets } from '../../../shared/contract/mask-secrets.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { createTimeOrderedId } from '../../../shared/platform/runtime/time-ordered-id.ts';
import { findCallerAddress } from '../callers/caller-address.ts';
import { wasResetForUnreadResponse } from '../callers/unread-callers.ts';
import { logAccess, type Access } from '../responses/access-line.ts';
import { endRequestSpan } from '../responses/request-span.ts';
import type { EndedRequest, RequestMetrics } from '../responses/request-metrics.ts';
import type { RejectionLog } from '../../admission/rejection-log.ts';
import { findRejection } from '../responses/find-rejection.ts';
import type { FactsInbox } from '../../requests/replies/facts-inbox.ts';
import type { ApiMiddleware } from '../request/context.ts';
import { normalizeTarget } from '../request/normalize-target.ts';

/** Shared by all requests: creating an error for each would capture a stack that nobody reads. */
const responseClosed = new AppError('job_cancelled');

export interface RequestContextOptions {
  readonly trustsProxy?: boolean;
  readonly metrics?: Pick<RequestMetrics, 'note'>;
  /** Of requests that reached no model. */
  readonly rejections?: Pick<RejectionLog, 'note'>;
  /** What workers did for the requests. */
  readonly facts?: Pick<FactsInbox, 'awaitLate' | 'forget'>;
}

/**
 * Assigns the request id, the abort signal and the caller's address, normalizes the target, and writes the access line
 * when the response is done.
 * @param trustsProxy whether to take the caller's address from the proxy in front of this server
 */
export function requestContext(
  log: Logger,
  { trustsProxy = false, metrics, rejections, facts }: RequestContextOptions = {},
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
      const durationMs = performance.now() - startedAtMs;
      const reason =
        !isWhole && wasResetForUnreadResponse(context.req.socket)
          ? 'client did not read the response'
          : undefined;
      if (state.span !== undefined) {
        const { holder, model, error, isBroken, replayOf } = state;
        const response = { status, isWhole, error, isBroken };
        endRequestSpan(state.span, { requestId, accountId: holder?.accountId, model, response, replayOf });
      }
      const report = (): void => {
        const { operation, model, error, isBroken, holder, replayOf, firstOutputAtMs } = state;
        // One object for both: copying it takes longer than the metrics.
        const access: Access & EndedRequest = {
          requestId,
          method,
          path,
          response: { status, isWhole, error, isBroken },
          durationMs,
          reason,
          address: context.request.ip,
          accountId: holder?.accountId,
          token: state.admin?.name,
          operation,
          model,
          firstOutputMs: firstOutputAtMs === undefined ? undefined : firstOutputAtMs - startedAtMs,
          facts: state.facts,
          replayOf,
          traceId: state.span?.traceId,
        };
        metrics?.note(access);
        const rejection = rejections === undefined ? null : findRejection(access);
        if (rejection !== null) rejections!.note(rejection);
        logAccess(log, access);
      };
      // What a request costs whose caller has left is known when its worker has settled it.
      if (!isWhole && facts !== undefined && state.facts === undefined) {
        facts.awaitLate(requestId, report);
        return;
      }
      report();
      facts?.forget(requestId);
    });
    await next();
  };
}

/** Rejects paths with a doubled slash. They come from a wrong base URL, and serving them would hide the mistake. */
export const rejectDoubledSlash: ApiMiddleware = async (context, next) => {
  if (context.path.includes('//')) {
    throw new AppError('not_found', {
      message: `There is no endpoint ${maskSecrets(shorten(context.path))}: the path contains a double slash. Check the base URL.`,
    });
  }
  await next();
};
