import { AppError } from '../../shared/contract/errors.ts';
import { callerSignal } from './caller-signal.ts';
import type { ApiContext } from './request-context.ts';
import { requesterOf } from './requester.ts';
import type { Services } from '../services.ts';

/** All calls that one account may have waiting take a second or two: a longer wait means that the database is away. */
const waitMs = 30_000;

/**
 * Does what asks MongoDB for a caller, when it is the turn of the account, the user or the network that asks. What waits is dropped when its caller leaves.
 * @throws AppError `service_unavailable` where no turn comes, `job_cancelled`
 */
export async function inDatabaseTurn<T>(
  { databaseTurns }: Pick<Services, 'databaseTurns'>,
  context: ApiContext,
  work: () => Promise<T>,
): Promise<T> {
  const turn = await databaseTurns.acquire(requesterOf(context), 1, {
    signal: callerSignal(context.res),
    waitMs,
    maxWaiting: Infinity,
    refuse: () => new AppError('service_unavailable', { message: 'no turn at the database came in time' }),
  });
  try {
    return await work();
  } finally {
    turn.release();
  }
}
