import { AppError } from '../../shared/contract/errors.ts';
import { tookTooLong } from '../../shared/look-ups/wait-for-look-up.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { within } from '../../shared/runtime/within.ts';
import type { Services } from '../services.ts';
import type { ApiContext } from './context.ts';
import { requesterOf } from './requester.ts';

/**
 * Runs work that uses MongoDB in a database turn of the requesting account, user or network. If the client disconnects
 * while the work waits for its turn, the work is dropped.
 *
 * The caller gets an error if waiting and working together take longer than `databaseWaitMs`. The calls that one
 * account may have waiting take a second or two in total, so a longer wait means that the database is down or hangs.
 * Work that has started continues after the timeout and does not release its database turn until it ends: MongoDB
 * executes its commands in any case, so the matching changes in Redis must follow. A caller that repeats the call finds
 * the work done, or gets an error that says so.
 * @param work gets a signal that aborts once the caller has received a 503. From then on, anything that only this
 * caller could receive, such as a new secret, must not be created, or must be undone.
 * @param amount how many of the process's turns the work takes
 * @throws AppError `service_unavailable` on timeout, `job_cancelled`
 */
export async function inDatabaseTurn<T>(
  { databaseTurns, databaseWaitMs, log }: Pick<Services, 'databaseTurns' | 'databaseWaitMs' | 'log'>,
  context: ApiContext,
  work: (timedOut: AbortSignal) => Promise<T>,
  amount = 1,
): Promise<T> {
  const startedMs = performance.now();
  const turn = await databaseTurns.acquire(requesterOf(context), amount, {
    signal: context.state.signal,
    waitMs: databaseWaitMs,
    maxWaiting: Infinity,
    refuse: () => new AppError('service_unavailable', { message: 'no database turn became free in time' }),
  });
  const timedOut = new AbortController();
  const working = work(timedOut.signal).finally(() => turn.release());
  const remainingMs = databaseWaitMs - (performance.now() - startedMs);
  return await within(remainingMs, working, () => {
    const error = tookTooLong('work in MongoDB', databaseWaitMs);
    timedOut.abort(error);
    // No caller will see the outcome.
    runInBackground(working.catch(ignoreExpected), 'work that its caller no longer waits for', log);
    throw error;
  });
}

/** Ignores outages, which are logged elsewhere, and errors for the caller, which no longer matter. */
function ignoreExpected(error: unknown): void {
  if (!(error instanceof AppError) || error.code === 'internal_error') throw error;
}
