// decisions 0042, 0096
import { setTimeout as delay } from 'node:timers/promises';
import compose from 'koa-compose';
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

type LimitDeps = Pick<Services, 'calls' | 'keyAccess'>;

/** Rejects a caller whose account's key has expired or may not be used from the caller's address. */
const checkAccess =
  ({ keyAccess }: LimitDeps): ApiMiddleware =>
  async (context, next) => {
    const { holder } = context.state;
    if (holder !== undefined) await keyAccess.check(holder.accountId, context.ip);
    await next();
  };

const limitAndCheck = (services: LimitDeps, inFlight: Holdings): ApiMiddleware =>
  compose([limitAccountCalls(inFlight), checkAccess(services)]);

/** Limits concurrent calls, except event streams, and checks that the key may be used. */
export const limitCalls = (services: LimitDeps): ApiMiddleware =>
  limitAndCheck(services, services.calls.short);

/** Like `limitCalls`, for an operation that waits for a job if its caller wants that: then like `limitStreams`. */
export const limitWaits = (services: LimitDeps): ApiMiddleware => {
  const limitShort = limitCalls(services);
  const limitLong = limitStreams(services);
  return (context, next) =>
    (readQueryString(context.querystring)['wait'] === undefined ? limitShort : limitLong)(context, next);
};

/**
 * Like `limitCalls`, for event streams. They have a limit of their own, because they last as long as their jobs and must
 * not block other calls.
 */
export const limitStreams = (services: LimitDeps): ApiMiddleware =>
  limitAndCheck(services, services.calls.streams);

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
