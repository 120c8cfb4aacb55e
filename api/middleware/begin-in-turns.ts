import { nextTurnWithoutKey } from '../../shared/fairness/work-turns.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiMiddleware } from './request-context.ts';

/** Together they take half a millisecond. */
const freePerIteration = 8;

/**
 * Lets a few calls without a key begin in one iteration of the event loop; those beyond wait for turns. Each of them is
 * cheap. Hundreds that come at once would still hold up all others, and whoever floods the process asks again as soon as
 * it is answered. All of them together have one place among the accounts. Within it networks of callers take turns, and
 * within a network the operations that it asks for: a health check does not wait behind a flood that comes from the same proxy.
 * @returns the step for each operation; they count together
 */
export function beginInTurns(): (operationId: string) => ApiMiddleware {
  let begun = 0;
  const reset = (): void => {
    begun = 0;
  };
  return (operationId) => async (context, next) => {
    if (begun === 0) setImmediate(reset);
    begun += 1;
    if (begun > freePerIteration) await nextTurnWithoutKey(callerNetwork(context.ip), operationId);
    await next();
  };
}
