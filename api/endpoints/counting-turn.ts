import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { CountingTurn } from '../../shared/pricing/count-tokens.ts';
import { holderOf } from '../middleware/authenticate.ts';
import { preAdmitDoubtful } from '../middleware/pre-admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/**
 * Turns of counting for one call. They end when its caller leaves, or its account turns out to be refused what it asks
 * for: counting takes milliseconds, or seconds for a large body.
 */
export function createCountingTurn(
  services: Services,
  context: ApiContext,
  model: CatalogModel,
): CountingTurn {
  const check = async (): Promise<void> => {
    if (context.res.destroyed) throw new AppError('job_cancelled');
    await preAdmitDoubtful(services, context, model);
  };
  return new CountingTurn(check, holderOf(context).accountId);
}
