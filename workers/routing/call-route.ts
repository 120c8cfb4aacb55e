import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { RouteGrant } from '../../shared/routing/grant-script.ts';
import type { RouteWay } from '../../shared/routing/route-way.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { UpstreamError, type Upstream, type UpstreamTarget } from '../upstreams/upstream.ts';
import { orderWays } from './order-ways.ts';
import { chooseBackoffMs, findSetAside, isOfKey, judgeFailure, mayRetry } from './retry-policy.ts';
import type { Patience, RouteGate } from './route-gate.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** What calls are made with; one for each worker process. */
export interface Routing {
  readonly upstreams: UpstreamPool;
  readonly gate: RouteGate;
}

export interface RouteCall<T> {
  /** Those of the model's that can serve this request. */
  readonly routes: readonly CatalogRoute[];
  readonly signal: AbortSignal;
  /** A call that got no slot of its upstream by then is given up; milliseconds of the epoch. */
  readonly deadlineAtMs: number;
  readonly patience: Patience;
  readonly log: Logger;
  /** Once anything went out to the caller, a second try would repeat it. */
  readonly hasOutput: () => boolean;
  readonly attempt: (upstream: Upstream, target: UpstreamTarget) => Promise<T>;
}

/**
 * Makes one call through the routes: wait until one may be called, call, and on failure choose again, until an answer,
 * a refusal of the request itself, output, or the end of the tries.
 * @throws AppError what the caller is told; the signal's reason where it was aborted
 */
export async function callRoute<T>(routing: Routing, call: RouteCall<T>): Promise<T> {
  const failed: RouteWay[] = [];
  const budgetMs = Math.max(0, ...call.routes.map((route) => route.upstream.timeoutMs));
  let startedAtMs: number | null = null;
  let attempts = 0;
  let last: UpstreamError | null = null;
  for (;;) {
    const leftMs = startedAtMs === null ? Infinity : budgetMs - (performance.now() - startedAtMs);
    const grant = await enterGate(routing.gate, call, failed, leftMs);
    if (grant === null) throw last === null ? nothingToCall() : toCallerError(last);
    startedAtMs ??= performance.now();
    try {
      return await callOnce(routing, call, grant);
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (!(error instanceof UpstreamError)) throw error;
      last = error;
      failed.push(grant.way);
      // A key at fault is tried past while there are others.
      if (!isOfKey(error) || orderWays(call.routes, failed, Math.random).length === 0) attempts += 1;
      const { failure, status } = error;
      const { upstream } = grant.way.route;
      call.log.warn(
        { upstream: upstream.name, failure, status, attempt: failed.length, reason: error.message },
        'upstream call failed',
      );
      const elapsedMs = performance.now() - startedAtMs;
      const history = { calls: failed.length, attempts, elapsedMs, budgetMs, hasOutput: call.hasOutput() };
      if (!mayRetry(error, history)) throw toCallerError(error);
      // The delay rejects with an error of its own; what follows tells the signal's reason.
      const backoffMs = chooseBackoffMs(error, attempts, Math.random());
      if (backoffMs > 0) await delay(backoffMs, undefined, { signal: call.signal }).catch(() => undefined);
      call.signal.throwIfAborted();
    }
  }
}

/** How long the ways that did not fail are waited for where those that did may be called again. */
const othersPauseMs = 1_500;

/**
 * Ways that failed for this call are tried again only where none of the others will be open shortly.
 * @param leftMs after so long no call is to begin any more
 */
async function enterGate<T>(
  gate: RouteGate,
  call: RouteCall<T>,
  failed: readonly RouteWay[],
  leftMs: number,
): Promise<RouteGrant | null> {
  if (call.routes.length === 0) {
    throw new AppError('model_disabled', { message: 'The model has no upstream now.' });
  }
  const fresh = orderWays(call.routes, failed, Math.random);
  if (failed.length === 0) return await gate.enter(fresh, call);
  const deadlineAtMs = Math.min(call.deadlineAtMs, Date.now() + leftMs);
  const enter = async (ways: readonly RouteWay[], mostMs: number): Promise<RouteGrant | null> => {
    const patience = {
      keyMs: Math.min(call.patience.keyMs, mostMs),
      breakerMs: Math.min(call.patience.breakerMs, mostMs),
    };
    return await gate.enter(ways, { signal: call.signal, deadlineAtMs, patience });
  };
  try {
    const grant = fresh.length === 0 ? null : await enter(fresh, Math.min(othersPauseMs, leftMs));
    return grant ?? (await enter(orderWays(call.routes, [], Math.random), leftMs));
  } catch (error) {
    // What it was that failed says more than that its time is up.
    if (error instanceof AppError && error.code === 'deadline_exceeded') return null;
    throw error;
  }
}

async function callOnce<T>({ upstreams, gate }: Routing, call: RouteCall<T>, grant: RouteGrant): Promise<T> {
  const { route, apiKey } = grant.way;
  try {
    const answer = await call.attempt(upstreams.get(route.upstream), toTarget(route, apiKey));
    gate.leave(grant, 'ok');
    return answer;
  } catch (error) {
    // A caller who left, and a fault of the request that we found ourselves, say nothing of the route.
    const isTold = error instanceof UpstreamError && !call.signal.aborted;
    if (isTold) gate.leave(grant, judgeFailure(error), findSetAside(error));
    else gate.leave(grant, 'none');
    throw error;
  }
}

function toTarget(route: CatalogRoute, apiKey: string | null): UpstreamTarget {
  const { model, drops, thinking, upstream } = route;
  return { model, apiKey, drops, thinking, imageUrls: upstream.imageUrls };
}

function nothingToCall(): AppError {
  return new AppError('upstream_error', {
    message: 'No upstream of this model can be called at the moment. Try again shortly.',
  });
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
