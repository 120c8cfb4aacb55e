import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../shared/contract/errors.ts';
import { maxCallsPerAccount } from '../../shared/contract/operation.ts';
import { Holdings } from '../../shared/fairness/holdings.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import { callerSignal } from './caller-signal.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';
import { callsHolderOf } from './requester.ts';

/** Calls of this kind take milliseconds. */
const retryAfterSeconds = 1;

export interface CallLimits {
  /** How long a call beyond the bound waits for its refusal. */
  readonly refusalDelayMs?: number;
}

/**
 * Bounds how many calls of an account, or of a session of the account area, that ask no model are under way at once: those
 * that wait, those that work, and those whose answers have not been read. Such calls cost nothing and are not counted by
 * the minute. Nothing but the session is looked up for calls beyond the bound. They are refused after a second: a client
 * that is refused at once asks again at once, and thousands of refusals hold up the process as well.
 */
export function limitAccountCalls({ refusalDelayMs = 1_000 }: CallLimits = {}): ApiMiddleware {
  const underWay = new Holdings();
  return async (context, next) => {
    const holder = callsHolderOf(context);
    if (underWay.of(holder) >= maxCallsPerAccount) throw await refuse(context, holder, refusalDelayMs);
    underWay.change(holder, 1);
    const release = (): void => underWay.change(holder, -1);
    try {
      await next();
    } finally {
      const { res } = context;
      // A response without a socket stands behind others of its connection, and may never say that it was closed.
      if (res.destroyed || res.socket === null) release();
      else res.once('close', release);
    }
  };
}

async function refuse({ res }: ApiContext, holder: string, delayMs: number): Promise<AppError> {
  const signal = callerSignal(res);
  try {
    await delay(delayMs, undefined, { signal });
  } catch {
    // It rejects where the caller has left, and for nothing else.
    return new AppError('job_cancelled');
  }
  // Those that came together are refused one in each iteration of the event loop.
  await nextWorkTurn(holder);
  return new AppError('rate_limit_exceeded', {
    message:
      `An account, or a session of the account area, may have ${maxCallsPerAccount} calls of this kind under way at once: those that ask no model, or ` +
      'streams of events. ' +
      'Read the answers of those that are, and try again.',
    headers: { 'retry-after': String(retryAfterSeconds) },
  });
}
