import type { ApiMiddleware } from '../request/context.ts';
import { keyHolderOf } from '../request/holder.ts';
import type { Services } from '../services.ts';

/** Records rejected calls of operations that call a model. Rejections of other calls would not predict the next one. */
export function noteRefusals({ refusals }: Pick<Services, 'refusals'>): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      refusals.note(keyHolderOf(context).accountId, error);
      throw error;
    }
  };
}
