import type { PrepareOptions } from '../../shared/preparing/preparation.ts';
import { preAdmit, preAdmitIfLikelyRejected, precheckBalance } from '../admission/pre-admit.ts';
import type { ApiContext } from '../http/request/context.ts';
import { holderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';

/** Creates the options with which a caller's request is prepared until its client disconnects. */
export function createPrepareOptions(services: Services, context: ApiContext): PrepareOptions {
  return {
    accountId: holderOf(context).accountId,
    signal: context.state.signal,
    async checkEarly(model, readsFiles) {
      context.state.model = model.id;
      precheckBalance(context, model);
      if (readsFiles) await preAdmit(services, context, model);
      else await preAdmitIfLikelyRejected(services, context, model);
    },
    checkTurn: (model) => preAdmitIfLikelyRejected(services, context, model),
  };
}
