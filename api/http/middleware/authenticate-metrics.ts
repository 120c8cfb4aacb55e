import { checkMetricsAccess } from '../../../shared/operator/check-metrics-access.ts';
import type { Services } from '../../services.ts';
import type { ApiMiddleware } from '../request/context.ts';

/** Lets only the operator's monitoring through. */
export function authenticateMetrics({ config }: Pick<Services, 'config'>): ApiMiddleware {
  return async (context, next) => {
    context.set('cache-control', 'no-store');
    checkMetricsAccess(context.req, config);
    await next();
  };
}
