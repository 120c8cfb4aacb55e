import type { Operation } from '../../../shared/contract/operation.ts';
import { checkMetricsAccess } from '../../../shared/operator/check-metrics-access.ts';
import type { Services } from '../../services.ts';
import type { ApiMiddleware } from '../request/context.ts';

/** Lets only the operator's monitoring through, and for admin operations also callers with the ADMIN_TOKEN. */
export function authenticateMetrics(
  { config }: Pick<Services, 'config'>,
  { tag }: Pick<Operation, 'tag'>,
): ApiMiddleware {
  const otherToken = tag === 'Admin' ? config.adminToken : null;
  return async (context, next) => {
    context.set('cache-control', 'no-store');
    checkMetricsAccess(context.req, config, otherToken);
    await next();
  };
}
