import { settleRequest, type FinishDependencies } from '../../shared/billing/finish-request.ts';
import { releaseReservation } from '../../shared/billing/settle-script.ts';
import type { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/pricing/cost.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

/** Gives a reservation back for a request that no model was asked for. */
export function release(dependencies: FinishDependencies, request: AdmittedRequest, log: Logger): void {
  releaseReservation(dependencies.redis, request).catch((error: unknown) => {
    log.warn({ requestId: request.requestId, err: error }, 'a reservation could not be released yet');
  });
}

/** Settles a stream whose worker died: what was generated, as far as its frames told, is paid for. */
export function settleBroken(
  dependencies: FinishDependencies,
  request: AdmittedRequest,
  tokens: number,
  error: AppError,
  log: Logger,
): void {
  settleRequest(dependencies, request, {
    usage: { ...noUsage, promptTokens: request.promptTokens, completionTokens: tokens },
    counted: true,
    error: { code: error.code, message: error.publicMessage },
    charged: tokens > 0,
    reachedModel: true,
  }).catch((failure: unknown) => {
    log.error({ requestId: request.requestId, err: failure }, 'a broken stream could not be settled');
  });
}
