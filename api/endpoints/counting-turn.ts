import { AppError } from '../../shared/contract/errors.ts';
import { CountingTurn } from '../../shared/pricing/count-tokens.ts';
import type { ApiContext } from '../middleware/request-context.ts';

/** Turns of counting for one call, which end when its caller leaves: counting a large body takes seconds. */
export function createCountingTurn({ res }: ApiContext): CountingTurn {
  return new CountingTurn(() => {
    if (res.destroyed) throw new AppError('job_cancelled');
  });
}
