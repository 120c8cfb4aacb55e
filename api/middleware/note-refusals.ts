import type { ApiMiddleware } from '../request/context.ts';
import { holderOf } from '../request/holder.ts';
import type { Services } from '../services.ts';

/** Records refusals, for operations that call a model. Refusals of other calls do not predict the next one of those. */
export function noteRefusals({ refusals }: Pick<Services, 'refusals'>): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      refusals.note(holderOf(context).accountId, error);
      throw error;
    }
  };
}
