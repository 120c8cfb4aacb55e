import { settleRequest, type FinishDeps } from '../../shared/settlement/finish-request.ts';
import { releaseReservation } from '../../shared/settlement/settle-script.ts';
import type { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/pricing/cost.ts';
import type { AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

/** Releases the reservation of a request that never reached a model. */
export function release(dependencies: FinishDeps, request: AdmittedRequest, log: Logger): void {
  releaseReservation(dependencies.redis, request).catch((error: unknown) => {
    log.warn({ requestId: request.requestId, err: error }, 'reservation not released yet');
  });
}

/**
 * Releases the reservation of a request, if there is one: Redis did not reply to its admission. If Redis does not reply
 * to this either, the reservation is released as an orphan.
 */
export function releaseIfHeld(dependencies: FinishDeps, request: AdmittedRequest, log: Logger): void {
  releaseReservation(dependencies.redis, request).catch((error: unknown) => {
    log.debug({ requestId: request.requestId, err: error }, 'reservation not released, if there is one');
  });
}

/** Settles a stream whose worker died. Bills the tokens that its frames reported. */
export function settleBroken(
  dependencies: FinishDeps,
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
    log.error({ requestId: request.requestId, err: failure }, 'settlement of a broken stream failed');
  });
}
