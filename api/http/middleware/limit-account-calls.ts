// decision 0042
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../../shared/contract/errors.ts';
import { maxCallsPerAccount } from '../../../shared/contract/operation.ts';
import type { Holdings } from '../../../shared/fairness/holdings.ts';
import { nextReadTurn } from '../../../shared/fairness/work-turns.ts';
import type { ApiContext, ApiMiddleware } from '../request/context.ts';
import { readQueryString } from '../request/read-query-string.ts';
import { callsHolderOf } from '../request/requester.ts';
import type { Services } from '../../services.ts';

/** Short, because the limited calls take milliseconds. */
const retryAfterSeconds = 1;

export interface CallLimits {
  /** How long a call over the limit waits before it is rejected. */
  readonly rejectionDelayMs?: number;
}

/**
 * Limits the concurrent calls that do not call a model, per account or per session of the account area. A call is in
 * progress while it waits, runs, or has an unread response. Such calls are not charged and have no limit per minute. A
 * call over the limit causes no look-up except that of its session. It is rejected only after a second, because clients
 * that are rejected immediately would retry immediately, and thousands of rejections slow the process down.
 * @param inFlight concurrent calls by account or session; shared by operations with a common limit
 */
export function limitAccountCalls(
  inFlight: Holdings,
  { rejectionDelayMs = 1_000 }: CallLimits = {},
): ApiMiddleware {
  return async (context, next) => {
    const holder = callsHolderOf(context);
    if (inFlight.of(holder) >= maxCallsPerAccount) throw await rejectLater(context, holder, rejectionDelayMs);
    inFlight.change(holder, 1);
    const release = (): void => inFlight.change(holder, -1);
    try {
      await next();
    } finally {
      const {
        res,
        state: { signal },
      } = context;
      // A response without a socket is queued behind others of its connection and may never emit `close`.
      if (signal.aborted || res.socket === null) release();
      else signal.addEventListener('abort', release, { once: true });
    }
  };
}

/** Limits concurrent calls, except event streams. */
export const limitCalls = ({ calls }: Pick<Services, 'calls'>): ApiMiddleware =>
  limitAccountCalls(calls.short);

/** Limits concurrent calls of an operation that waits for a job if its caller wants that: then like event streams. */
export const limitWaits = ({ calls }: Pick<Services, 'calls'>): ApiMiddleware => {
  const limitShort = limitAccountCalls(calls.short);
  const limitLong = limitAccountCalls(calls.streams);
  return (context, next) =>
    (readQueryString(context.querystring)['wait'] === undefined ? limitShort : limitLong)(context, next);
};

/** Limits concurrent event streams, which last as long as their jobs, so that they do not block other calls. */
export const limitStreams = ({ calls }: Pick<Services, 'calls'>): ApiMiddleware =>
  limitAccountCalls(calls.streams);

async function rejectLater(
  { state: { signal } }: ApiContext,
  holder: string,
  delayMs: number,
): Promise<AppError> {
  try {
    await delay(delayMs, undefined, { signal });
  } catch {
    // The delay rejects only if the client has disconnected.
    return new AppError('job_cancelled');
  }
  // Rejects at most one of several concurrent calls per event-loop iteration.
  await nextReadTurn(holder);
  return new AppError('rate_limit_exceeded', {
    message:
      'Too many concurrent requests. An account or web session can have at most ' +
      `${maxCallsPerAccount} requests that do not call a model, and as many event streams and calls that wait for jobs, ` +
      'in progress at once. ' +
      'Read the pending responses, and try again.',
    headers: { 'retry-after': String(retryAfterSeconds) },
  });
}
