import { AppError } from '../../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { tookTooLong } from '../../../shared/platform/storage/wait-for-look-up.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { within } from '../../../shared/platform/runtime/within.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from './context.ts';
import { requesterOf } from './requester.ts';

/** The longest wait for a turn, however many calls of the account are ahead. */
const maxWaitMs = 30_000;

/** When a database turn last ended. While some end, the database works, and calls that wait will have theirs. */
const lastEndMs = new WeakMap<FairBudget, number>();

/**
 * Runs work that uses MongoDB in a database turn of the requesting account, user or network. If the client disconnects
 * while the work waits for its turn, the work is dropped.
 *
 * The caller gets an error if the work takes longer than `databaseWaitMs`, or if no turn has ended for that long while
 * it waits for one: the database is down or hangs. Work that has started continues after the timeout and does not
 * release its database turn until it ends: MongoDB executes its commands in any case, so the matching changes in Redis
 * must follow. A caller that repeats the call finds the work done, or gets an error that says so.
 * @param work gets a signal that aborts once the caller has received a 503. From then on, anything that only this
 * caller could receive, such as a new secret, must not be created, or must be undone.
 * @param amount how many of the process's turns the work takes
 * @throws AppError `service_unavailable` on timeout, `job_cancelled`
 */
export async function inDatabaseTurn<T>(
  services: Pick<Services, 'databaseTurns' | 'databaseWaitMs' | 'log'>,
  context: ApiContext,
  work: (timedOut: AbortSignal) => Promise<T>,
  amount = 1,
): Promise<T> {
  const { databaseTurns, databaseWaitMs, log } = services;
  const turn = await acquireTurn(services, context, amount);
  const timedOut = new AbortController();
  const working = work(timedOut.signal).finally(() => {
    lastEndMs.set(databaseTurns, performance.now());
    turn.release();
  });
  return await within(databaseWaitMs, working, () => {
    const error = tookTooLong('work in MongoDB', databaseWaitMs);
    timedOut.abort(error);
    // No caller will see the outcome.
    runInBackground(working.catch(ignoreExpected), 'work that its caller no longer waits for', log);
    throw error;
  });
}

async function acquireTurn(
  { databaseTurns, databaseWaitMs }: Pick<Services, 'databaseTurns' | 'databaseWaitMs'>,
  context: ApiContext,
  amount: number,
): Promise<BudgetShare> {
  const requester = requesterOf(context);
  const { signal } = context.state;
  const startedMs = performance.now();
  const stuck = new AbortController();
  const check = (): void => {
    const sinceMs = performance.now() - Math.max(startedMs, lastEndMs.get(databaseTurns) ?? 0);
    if (sinceMs >= databaseWaitMs) stuck.abort(noTurn());
    else timer = setTimeout(check, databaseWaitMs - sinceMs);
  };
  let timer = setTimeout(check, databaseWaitMs);
  try {
    return await databaseTurns.acquire(requester, amount, {
      signal: AbortSignal.any([signal, stuck.signal]),
      waitMs: maxWaitMs,
      maxWaiting: Infinity,
      createError: noTurn,
    });
  } finally {
    clearTimeout(timer);
  }
}

const noTurn = (): AppError =>
  new AppError('service_unavailable', { message: 'no database turn became free in time' });

/** Ignores outages, which are logged elsewhere, and errors for the caller, which no longer matter. */
function ignoreExpected(error: unknown): void {
  if (!(error instanceof AppError) || error.code === 'internal_error') throw error;
}
