import { AppError } from '../../shared/contract/errors.ts';
import { holderOf } from '../middleware/authenticate.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/** All that one account may have in line take a second or two: who waits for so long waits for a database that is away. */
const waitMs = 30_000;

/**
 * Does what asks MongoDB for a caller, when it is the account's turn. What waits is dropped when its caller leaves.
 * @throws AppError `service_unavailable` where no turn comes, `job_cancelled`
 */
export async function inDatabaseTurn<T>(
  { databaseTurns }: Services,
  context: ApiContext,
  work: () => Promise<T>,
): Promise<T> {
  const turn = await databaseTurns.acquire(holderOf(context).accountId, 1, {
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
