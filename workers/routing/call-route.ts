import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { UpstreamError, type Upstream, type UpstreamTarget } from '../upstreams/upstream.ts';
import { chooseRoute, type Candidate } from './choose-route.ts';
import type { UpstreamPool } from './upstream-pool.ts';

const maxAttempts = 3;
/** Full jitter below a doubling bound; a vendor's own word counts where it is short enough for a caller to wait. */
const backoffBaseMs = 100;
const maxBackoffMs = 2_000;

export interface RouteCall<T> {
  readonly model: CatalogModel;
  readonly signal: AbortSignal;
  /** A call that got no slot of its upstream by then is given up; milliseconds of the epoch. */
  readonly deadlineAtMs: number;
  readonly log: Logger;
  /** Once anything went out to the caller, a second try would repeat it. */
  readonly hasOutput: () => boolean;
  readonly attempt: (upstream: Upstream, target: UpstreamTarget) => Promise<T>;
}

/**
 * Makes one call through the model's routes: choose, call, and on failure choose again, until an answer, a refusal of
 * the request itself, output, or the last attempt.
 * @throws AppError what the caller is told; the signal's reason where it was aborted
 */
export async function callRoute<T>(pool: UpstreamPool, call: RouteCall<T>): Promise<T> {
  const failed: Candidate[] = [];
  for (let attempt = 1; ; attempt++) {
    const choice = chooseRoute(call.model.routes, failed, Math.random());
    if (choice === null) {
      throw new AppError('model_disabled', { message: `The model ${call.model.id} has no upstream now.` });
    }
    try {
      return await callOnce(pool, call, choice);
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (!(error instanceof UpstreamError)) throw error;
      failed.push(choice);
      const { failure, status } = error;
      const upstream = choice.route.upstream.name;
      call.log.warn({ upstream, failure, status, attempt, reason: error.message }, 'upstream call failed');
      if (failure === 'rejected' || call.hasOutput() || attempt >= maxAttempts) throw toCallerError(error);
      // The delay rejects with an error of its own; the loop's next call tells the signal's reason.
      await delay(backoffMs(attempt, error.retryAfterMs), undefined, { signal: call.signal }).catch(
        () => undefined,
      );
      call.signal.throwIfAborted();
    }
  }
}

async function callOnce<T>(pool: UpstreamPool, call: RouteCall<T>, { route, apiKey }: Candidate): Promise<T> {
  const { upstream, slots } = pool.get(route.upstream);
  const release = await slots.acquire(call.signal, call.deadlineAtMs);
  try {
    return await call.attempt(upstream, toTarget(route, apiKey));
  } finally {
    release();
  }
}

function toTarget(route: CatalogRoute, apiKey: string | null): UpstreamTarget {
  const { model, drops, thinking, upstream } = route;
  return { model, apiKey, drops, thinking, imageUrls: upstream.imageUrls };
}

function backoffMs(attempt: number, retryAfterMs: number | null): number {
  if (retryAfterMs !== null && retryAfterMs <= maxBackoffMs) return retryAfterMs;
  return Math.random() * Math.min(maxBackoffMs, backoffBaseMs * 2 ** attempt);
}

/** What a caller is told of a vendor's failure: its own words only where it refused the caller's own request. */
function toCallerError(error: UpstreamError): AppError {
  switch (error.failure) {
    case 'rejected':
      return new AppError('upstream_rejected', { message: error.message, cause: error });
    case 'timeout':
      return new AppError('upstream_timeout', { cause: error });
    case 'auth':
    case 'rate_limited':
    case 'unavailable':
      return new AppError('upstream_error', { cause: error });
    default:
      return error.failure satisfies never;
  }
}
