import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { CountingTurn } from '../../shared/catalog/count-tokens.ts';
import { preAdmitIfLikelyRejected } from '../admission/pre-admit.ts';
import type { ApiContext } from '../http/request/context.ts';
import { keyHolderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';

/**
 * Creates the event-loop turns in which the text of one call is tokenized. Tokenizing takes milliseconds, or seconds
 * for a large body, so it stops if the client disconnects or a check of the account fails.
 */
export function createCountingTurn(
  services: Services,
  context: ApiContext,
  model: CatalogModel,
): CountingTurn {
  const check = async (): Promise<void> => {
    context.state.signal.throwIfAborted();
    await preAdmitIfLikelyRejected(services, context, model);
  };
  return new CountingTurn(check, keyHolderOf(context).accountId);
}
