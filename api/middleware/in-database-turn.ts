import { AppError } from '../../shared/contract/errors.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { tookTooLong, within } from '../../shared/runtime/within.ts';
import { callerSignal } from './caller-signal.ts';
import type { ApiContext } from './request-context.ts';
import { requesterOf } from './requester.ts';
import type { Services } from '../services.ts';

/**
 * Does what asks MongoDB for a caller, when it is the turn of the account, the user or the network that asks.
 * What waits is dropped when its caller leaves.
 *
 * The caller waits for turn and work together as long as `databaseWaitMs`: all calls that one account may have waiting take
 * a second or two, so a longer wait means that the database is away or hangs. Work that has begun goes on and keeps its turn:
 * what MongoDB was asked for it does in any case, so what belongs to it in Redis must follow. Who repeats a call finds it
 * done, or is told so.
 * @param work is given a signal that aborts when the caller has been told 503. What only that caller could be told, such as a
 *   new secret, must not be made from then on, or must be undone.
 * @throws AppError `service_unavailable` where the time is over, `job_cancelled`
 */
export async function inDatabaseTurn<T>(
  { databaseTurns, databaseWaitMs, log }: Pick<Services, 'databaseTurns' | 'databaseWaitMs' | 'log'>,
  context: ApiContext,
  work: (late: AbortSignal) => Promise<T>,
): Promise<T> {
  const startedMs = performance.now();
  const turn = await databaseTurns.acquire(requesterOf(context), 1, {
    signal: callerSignal(context.res),
    waitMs: databaseWaitMs,
    maxWaiting: Infinity,
    refuse: () => new AppError('service_unavailable', { message: 'no turn at the database came in time' }),
  });
  const late = new AbortController();
  const working = work(late.signal).finally(() => turn.release());
  const leftMs = databaseWaitMs - (performance.now() - startedMs);
  return await within(leftMs, working, () => {
    const error = tookTooLong('what MongoDB was asked', databaseWaitMs);
    late.abort(error);
    // Nobody else hears of how it ends.
    runInBackground(working.catch(passAway), 'what a caller no longer waits for', log);
    throw error;
  });
}

/** Outages are noticed elsewhere, and refusals are nobody's business any more. */
function passAway(error: unknown): void {
  if (!(error instanceof AppError) || error.code === 'internal_error') throw error;
}
