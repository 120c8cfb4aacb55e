import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { modelDisabled } from '../../shared/contract/model-errors.ts';
import type { CallSlot } from '../../shared/routing/acquire-script.ts';
import { listCandidates, type RouteCandidate } from '../../shared/routing/route-candidate.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import {
  UpstreamError,
  type AcquireFurther,
  type Upstream,
  type UpstreamTarget,
} from '../upstreams/upstream.ts';
import { acquireFurther, releaseFailed } from './further-slot.ts';
import { orderCandidates } from './order-candidates.ts';
import { chooseBackoffMs, isOfKey, mayRetry } from './retry-policy.ts';
import type { WaitLimits } from './wait-queue.ts';
import type { RouteLimiter } from './route-limiter.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** Everything that calls are made with. One per worker process. */
export interface Routing {
  readonly upstreams: UpstreamPool;
  readonly limiter: RouteLimiter;
}

/** A route's upstream and the target to call there. */
export interface RouteTarget {
  readonly upstream: Upstream;
  readonly target: UpstreamTarget;
}

/** What an attempt gets along with its call slot. */
export interface GrantedCall {
  /** The account that the slot was granted to. */
  readonly accountId: string;
  readonly route: CatalogRoute;
  /** How many more calls could run in parallel with this one. */
  readonly spareSlots: number;
  /** The number of calls that may run at once. */
  readonly slots: number;
  /** Call this once the vendor starts to respond successfully, if the response takes a while. */
  readonly onAlive: () => void;
  /** Whether another account waits for the slot that this call holds. Takes one round trip to Redis. */
  readonly isContested: () => Promise<boolean>;
  /** Waits for another slot of the same candidate, for a call in parallel with this one. */
  readonly acquireFurther: AcquireFurther;
  /** Reports that the call also serves these other accounts, so its outcome applies to all of them. */
  readonly onShared: (accountIds: Iterable<string>) => void;
}

export interface RouteCall<T> {
  /**
   * The accounts that the call may be made for, in the order of their turns. One account if it serves one
   * request.
   */
  readonly accountIds: () => Iterable<string>;
  /** The routes of the model that can serve this request. */
  readonly routes: readonly CatalogRoute[];
  readonly signal: AbortSignal;
  /** The call fails if it has no slot of its upstream by then; milliseconds since the epoch. */
  readonly deadlineAtMs: number;
  readonly waitLimits: WaitLimits;
  /** No client waits at a socket for this call. Calls that a client waits for go first. */
  readonly isBackground?: boolean;
  /**
   * A durable job waits instead of failing: vendors at their rate limits are retried for as long as calls may
   * take.
   */
  readonly outlastsLimits: boolean;
  /** Whether to retry after a vendor timed out. The vendor may still finish the first call, and charges for both. */
  readonly outlastsTimeouts: boolean;
  readonly log: Logger;
  /** Once any output went out to the caller, a retry would repeat it. */
  readonly hasOutput: () => boolean;
  /**
   * Returns a function that loads whatever a call through these routes needs and is not loaded yet, or null if
   * there is nothing to load. It runs while no slot is held, because the sender of the request controls how
   * long it takes.
   */
  readonly findMissing?: (targets: readonly RouteTarget[]) => (() => Promise<void>) | null;
  readonly attempt: (upstream: Upstream, target: UpstreamTarget, granted: GrantedCall) => Promise<T>;
}

/**
 * Makes one call through the routes: loads what the call needs, acquires a slot, calls, and retries with
 * another candidate on failure. Ends with a response, a rejection of the request itself, a failure after output
 * has started, or when the retries are used up.
 * @throws AppError the error for the caller; the signal's reason if it was aborted
 */
export async function callRoute<T>(routing: Routing, call: RouteCall<T>): Promise<T> {
  if (call.routes.length === 0) throw modelDisabled();
  await findMissingOfAll(routing, call)?.();
  const failed: RouteCandidate[] = [];
  const budgetMs = 2 * Math.max(0, ...call.routes.map((route) => route.upstream.timeoutMs));
  let startedAtMs: number | null = null;
  let attempts = 0;
  let calls = 0;
  let last: UpstreamError | null = null;
  for (;;) {
    const leftMs = startedAtMs === null ? Infinity : budgetMs - (performance.now() - startedAtMs);
    const slot = await acquireSlot(routing.limiter, call, failed, leftMs);
    if (slot === null) throw last === null ? nothingToCall() : toCallerError(last);
    startedAtMs ??= performance.now();
    try {
      const outcome = await callOnce(routing, call, slot);
      if ('answer' in outcome) return outcome.answer;
      await outcome.loadMissing();
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (!(error instanceof UpstreamError)) throw error;
      last = error;
      // A missing model or address is missing for every key of the route.
      failed.push(...(error.failure === 'missing' ? listCandidates(slot.candidate.route) : [slot.candidate]));
      const isLast = orderCandidates(call.routes, failed, Math.random).length === 0;
      if (!call.outlastsLimits || error.failure !== 'rate_limited') {
        calls += 1;
        // A failing key does not count as an attempt while there are other keys to try.
        if (!isOfKey(error) || isLast) attempts += 1;
      }
      logFailure(call.log, slot.candidate, error, calls);
      const elapsedMs = performance.now() - startedAtMs;
      const hasOutput = call.hasOutput();
      const { outlastsTimeouts } = call;
      const tries = { calls, attempts, elapsedMs, budgetMs };
      const history = { ...tries, hasOutput, hasOtherRoute: !isLast, outlastsTimeouts };
      if (!mayRetry(error, history)) throw toCallerError(error);
      // The delay rejects with its own error; `throwIfAborted` throws the signal's reason instead.
      const backoffMs = chooseBackoffMs(error, attempts, Math.random());
      if (backoffMs > 0) await delay(backoffMs, undefined, { signal: call.signal }).catch(() => undefined);
      call.signal.throwIfAborted();
    }
  }
}

/** How long to wait for candidates that have not failed yet before retrying those that have. */
const othersPauseMs = 1_500;

/**
 * Retries candidates that failed for this call only if no other candidate becomes available shortly.
 * @param leftMs no call may begin after this many milliseconds
 */
async function acquireSlot<T>(
  limiter: RouteLimiter,
  call: RouteCall<T>,
  failed: readonly RouteCandidate[],
  leftMs: number,
): Promise<CallSlot | null> {
  const fresh = orderCandidates(call.routes, failed, Math.random);
  if (failed.length === 0) return await limiter.acquire(fresh, call);
  const deadlineAtMs = Math.min(call.deadlineAtMs, Date.now() + leftMs);
  const acquire = async (candidates: readonly RouteCandidate[], mostMs: number): Promise<CallSlot | null> => {
    const waitLimits = {
      keyMs: Math.min(call.waitLimits.keyMs, mostMs),
      breakerMs: Math.min(call.waitLimits.breakerMs, mostMs),
    };
    return await limiter.acquire(candidates, {
      accountIds: call.accountIds,
      signal: call.signal,
      deadlineAtMs,
      waitLimits,
      ...(call.isBackground === true && { isBackground: true }),
    });
  };
  try {
    const slot = fresh.length === 0 ? null : await acquire(fresh, Math.min(othersPauseMs, leftMs));
    return slot ?? (await acquire(orderCandidates(call.routes, [], Math.random), leftMs));
  } catch (error) {
    // The vendor's failure tells the caller more than the expired deadline does.
    if (error instanceof AppError && error.code === 'deadline_exceeded') return null;
    throw error;
  }
}

/** Loads what any of the routes may need before acquiring a slot, so that the call waits for its slot only once. */
function findMissingOfAll<T>({ upstreams }: Routing, call: RouteCall<T>): (() => Promise<void>) | null {
  const { findMissing, routes } = call;
  if (findMissing === undefined) return null;
  return findMissing(routes.map((route) => findTarget(upstreams, route, null)));
}

/** The response, or what to load before the route can be called. The slot is released while that loads. */
type CallResult<T> = { readonly answer: T } | { readonly loadMissing: () => Promise<void> };

async function callOnce<T>(
  { upstreams, limiter }: Routing,
  call: RouteCall<T>,
  slot: CallSlot,
): Promise<CallResult<T>> {
  const { route, apiKey } = slot.candidate;
  let accountIds: readonly string[] = [slot.accountId];
  try {
    const { upstream, target } = findTarget(upstreams, route, apiKey);
    const loadMissing = call.findMissing?.([{ upstream, target }]) ?? null;
    if (loadMissing !== null) {
      limiter.release(slot, 'none');
      return { loadMissing };
    }
    const answer = await call.attempt(upstream, target, {
      accountId: slot.accountId,
      route,
      spareSlots: slot.spareSlots,
      slots: slot.slots,
      onAlive: () => limiter.confirm(slot),
      isContested: () => limiter.isContested(slot),
      acquireFurther: (signal) => acquireFurther(limiter, call, slot, signal),
      onShared: (shared) => {
        accountIds = [...shared];
      },
    });
    limiter.release(slot, 'ok', null, accountIds);
    return { answer };
  } catch (error) {
    releaseFailed(limiter, slot, error, accountIds);
    throw error;
  }
}

function findTarget(upstreams: UpstreamPool, route: CatalogRoute, apiKey: string | null): RouteTarget {
  const { model, drops, thinking, upstream } = route;
  return {
    upstream: upstreams.get(upstream),
    target: { model, apiKey, drops, thinking, imageUrls: upstream.imageUrls },
  };
}

/** A missing model or address is a mistake in the catalog, or the vendor retired the model. */
function logFailure(
  log: Logger,
  { route, fingerprint }: RouteCandidate,
  error: UpstreamError,
  call: number,
): void {
  const { failure, status } = error;
  const fields = {
    upstream: route.upstream.name,
    upstreamModel: route.model,
    key: fingerprint,
    failure,
    status,
    call,
    reason: error.message,
  };
  if (failure === 'missing') log.error(fields, 'an upstream does not know the model or address of a route');
  else log.warn(fields, 'upstream call failed');
}

function nothingToCall(): AppError {
  return new AppError('upstream_error', {
    message:
      'No vendor of this model can be called at the moment. Try again shortly, or choose another model.',
  });
}

/**
 * Maps a vendor's failure to the error for the caller. The vendor's message is passed on only if it rejected
 * the caller's request.
 */
function toCallerError(error: UpstreamError): AppError {
  switch (error.failure) {
    case 'rejected':
    case 'missing':
      return new AppError('upstream_rejected', { message: error.message, cause: error });
    case 'too_large':
      // The vendor's message names the operator's account.
      return new AppError('upstream_rejected', {
        message:
          'The request has more tokens than the vendors of this model take in a minute. Send fewer at once.',
        cause: error,
      });
    case 'timeout':
      return new AppError('upstream_timeout', { cause: error });
    case 'rate_limited':
      return new AppError('upstream_error', {
        message: 'The vendors of this model are at their limits. Try again shortly.',
        cause: error,
      });
    case 'auth':
    case 'unavailable':
      return new AppError('upstream_error', { cause: error });
    default:
      return error.failure satisfies never;
  }
}
