import type { ApiMiddleware } from '../request/context.ts';
import { holderOf } from '../request/holder.ts';
import type { Services } from '../../services.ts';

/**
 * Records rejected requests of operations that call a model. Other operations are not recorded, because their
 * rejections do not predict that the account's next request will be rejected.
 */
export function noteRejections({ recentRejections }: Pick<Services, 'recentRejections'>): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      recentRejections.note(holderOf(context).accountId, error);
      throw error;
    }
  };
}
