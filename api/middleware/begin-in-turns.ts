import type { Operation } from '../../shared/contract/operation.ts';
import { nextTurnWithoutKey } from '../../shared/fairness/work-turns.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiMiddleware } from '../request/context.ts';

/** Together they take half a millisecond. */
const freePerIteration = 8;

/** Calls started in this iteration of the event loop, of all operations. */
let begun = 0;
const reset = (): void => {
  begun = 0;
};

/**
 * Lets a few calls without a key start in each iteration of the event loop; the rest wait for turns. Each call is
 * cheap, but hundreds at once would delay everything else, and a client that floods the process calls again as soon as
 * it has its response. All of them together count as one among the accounts. Within that, networks take turns, and
 * within a network the operations: a health check does not wait behind a flood that comes from the same proxy.
 */
export function beginInTurns(_: unknown, { operationId }: Pick<Operation, 'operationId'>): ApiMiddleware {
  return async (context, next) => {
    if (begun === 0) setImmediate(reset);
    begun += 1;
    if (begun > freePerIteration) await nextTurnWithoutKey(callerNetwork(context.ip), operationId);
    await next();
  };
}
