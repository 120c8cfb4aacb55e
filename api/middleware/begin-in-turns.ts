import type { Operation } from '../../shared/contract/operation.ts';
import { nextTurnWithoutKey } from '../../shared/fairness/work-turns.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiMiddleware } from '../request/context.ts';

/** Calls that start without waiting in one iteration. Together they take half a millisecond. */
const freePerIteration = 8;

/** Calls of all operations started in this iteration of the event loop. */
let started = 0;
const reset = (): void => {
  started = 0;
};

/**
 * Lets a few calls without a key start in each iteration of the event loop; the others wait for turns. Each call is
 * cheap, but hundreds in one iteration would delay everything else, and a client that floods the process calls again as
 * soon as it has its response. All calls without a key together take turns with the accounts, as if they were one
 * account. Within that, networks take turns, and within a network the operations: a health check does not wait behind a
 * flood that comes from the same proxy.
 */
export function beginInTurns(_: unknown, { operationId }: Pick<Operation, 'operationId'>): ApiMiddleware {
  return async (context, next) => {
    if (started === 0) setImmediate(reset);
    started += 1;
    if (started > freePerIteration) await nextTurnWithoutKey(callerNetwork(context.ip), operationId);
    await next();
  };
}
