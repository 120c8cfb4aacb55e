import { settleRequest, type FinishDeps } from '../../../shared/work/settlement/finish-request.ts';
import { releaseReservation } from '../../../shared/work/settlement/settle-script.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { callRedis } from '../../../shared/platform/redis/redis-client.ts';
import { retryThroughOutage } from '../../../shared/platform/redis/retry-through-outage.ts';
import { noUsage } from '../../../shared/catalog/cost.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

/** Releases the reservation of a request that never reached a model. */
export function release(dependencies: FinishDeps, request: AdmittedRequest, log: Logger): void {
  releaseReservation(dependencies.redis, request).catch((error: unknown) => {
    log.warn({ requestId: request.requestId, err: error }, 'reservation not released yet');
  });
}

/**
 * Releases the reservation of a request whose admission Redis did not answer, so that it is unknown whether there is
 * one. Retries during an outage.
 */
export function releaseIfHeld({ redis }: FinishDeps, request: AdmittedRequest, log: Logger): void {
  const untilMs = performance.now() + liveness.orphan.releasedMs;
  retryThroughOutage(() => callRedis(() => releaseReservation(redis, request)), {
    isOutage: (error) => error instanceof AppError && performance.now() < untilMs,
  }).catch((error: unknown) => {
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
