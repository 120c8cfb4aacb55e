import type { ApiMiddleware } from '../request/context.ts';
import { keyHolderOf } from '../request/holder.ts';
import type { Services } from '../services.ts';

/** Records refusals of operations that call a model. Refusals of other calls would not predict the next refusal. */
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
