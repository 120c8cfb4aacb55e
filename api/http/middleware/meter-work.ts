// decision 0071
import { fullPathOf } from '../../description/describe-operation.ts';
import { operations } from '../../contract/operations.ts';
import type { ApiMiddleware } from '../request/context.ts';
import { WorkMeter, type MeteredServices } from '../request/work-meter.ts';
import { isFixedPath } from './reject-method.ts';

const healthPath = fullPathOf(operations.getHealth);

/**
 * Measures the work of each request from here on, and lets unpaid calls wait once their network has used up its share
 * of the process's time. Comes before anything that reads what a caller sent beyond its address.
 */
export function meterRequests(services: MeteredServices): ApiMiddleware {
  return async (context, next) => {
    const { path } = context;
    const meter = new WorkMeter(services, context, {
      operation: isFixedPath(path) ? path : 'other',
      isExempt: path === healthPath,
    });
    context.state.meter = meter;
    if (meter.mayHaveToWait) await meter.waitForShare();
    await meter.measure(next);
  };
}

/**
 * Measures a middleware, together with what it calls before it waits. A call that has waited, for a look-up or for its
 * body, continues with its next middleware only if its network still has time.
 */
export function meterWork(run: ApiMiddleware): ApiMiddleware {
  return (context, next) => {
    const { meter } = context.state;
    if (meter === undefined || meter.isRunning) return run(context, next);
    const measure = (): unknown => meter.measure(() => run(context, next));
    return meter.mayHaveToWait ? meter.waitForShare().then(measure) : measure();
  };
}
