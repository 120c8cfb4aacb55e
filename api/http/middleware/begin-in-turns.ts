import type { Operation } from '../../../shared/contract/operation.ts';
import { nextTurnWithoutKey } from '../../../shared/fairness/work-turns.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiMiddleware } from '../request/context.ts';

/** Number of calls that start without waiting in one event-loop iteration. Together they take half a millisecond. */
const freePerIteration = 8;

/** Number of calls, of all operations, that arrived here in this event-loop iteration. */
let arrivedCalls = 0;
const reset = (): void => {
  arrivedCalls = 0;
};

/**
 * Lets a few calls without a key start in each event-loop iteration; the others wait for fair-queue turns. Each call is
 * cheap, but hundreds in one iteration would delay everything else, and a client that floods the process calls again as
 * soon as it has its response. All calls without a key together are treated as one account. Among them, networks take
 * turns, and within a network, operations take turns: so a health check does not wait behind a flood of other calls
 * from the same proxy.
 */
export function beginInTurns(_: unknown, { operationId }: Pick<Operation, 'operationId'>): ApiMiddleware {
  return async (context, next) => {
    if (arrivedCalls === 0) setImmediate(reset);
    arrivedCalls += 1;
    if (arrivedCalls > freePerIteration) await nextTurnWithoutKey(callerNetwork(context.ip), operationId);
    await next();
  };
}
