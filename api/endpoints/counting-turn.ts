import { AppError } from '../../shared/contract/errors.ts';
import { CountingTurn } from '../../shared/pricing/count-tokens.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';

/** Turns of counting for one call, which end when its caller leaves: counting a large body takes seconds. */
export function createCountingTurn(context: ApiContext): CountingTurn {
  return new CountingTurn(() => {
    if (context.res.destroyed) throw new AppError('job_cancelled');
  }, holderOf(context).accountId);
}
