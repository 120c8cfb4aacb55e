import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { GenAiOperation } from '../../shared/contract/gen-ai.ts';
import { modelDisabled } from '../../shared/contract/model-errors.ts';
import type { CallSlot } from './acquire-script.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import { listCandidates, type RouteCandidate } from '../../shared/routing/route-candidate.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { Tracing } from '../../shared/platform/tracing/tracing.ts';
import {
  UpstreamError,
  type AcquireExtraSlot,
  type Upstream,
  type UpstreamTarget,
  type UpstreamUsage,
} from '../upstreams/upstream.ts';
import type { CallObserver, EndedCall } from './call-observer.ts';
import { CallSpan } from './call-span.ts';
import type { CallTally } from './call-tally.ts';
import { noCandidate, toCallerError } from './to-caller-error.ts';
import { acquireExtraSlot, releaseFailed } from './extra-slot.ts';
import { orderCandidates } from './order-candidates.ts';
import { chooseBackoffMs, isKeyFailure, mayRetry, type CallHistory } from './retry-policy.ts';
import type { WaitLimits } from './wait-queue.ts';
import { RequestFailures } from './request-failures.ts';
import type { RouteLimiter } from './route-limiter.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** The dependencies of calls. One per worker process. */
export interface Routing {
  readonly upstreams: UpstreamPool;
  readonly limiter: RouteLimiter;
  readonly tally?: CallTally;
  /** Called for each vendor call when it has ended. */
  readonly onCallEnded?: (call: EndedCall) => void;
  /** Null or absent if calls are not traced. */
  readonly tracing?: Tracing | null;
  /** Whether an operator has drained a model's route: it gets no further calls. By default, none is. */
  readonly isDrained?: (model: string, route: CatalogRoute) => boolean;
}

/** A route's upstream and the target to call there. */
export interface RouteTarget {
  readonly upstream: Upstream;
  readonly target: UpstreamTarget;
}

/** The slot that an attempt was granted, and operations on it. */
export interface GrantedCall {
  /** The account that the slot was granted to. */
  readonly accountId: string;
  readonly route: CatalogRoute;
  /** Whether the slot was taken over from an earlier call, without a round trip to Redis. */
  readonly isKept: () => boolean;
  /** How many more calls can run in parallel with this one. */
  readonly spareSlots: number;
  /** The maximum number of concurrent calls. */
  readonly slots: number;
  /** Call this once the vendor starts to respond successfully, if the response takes a while. */
  readonly reportHealthy: () => void;
  /** Whether another account waits for the slot that this call holds. Takes one round trip to Redis. */
  readonly isContested: () => Promise<boolean>;
  /** Waits for another slot of the same candidate, to make a call in parallel with this one. */
  readonly acquireExtraSlot: AcquireExtraSlot;
  /** Reports that the call also serves these other accounts, so its outcome applies to all of them. */
  readonly setServedAccounts: (accountIds: Iterable<string>) => void;
  /**
   * Reports the success of the call to its observers. An attempt that delivers its response by itself calls this before,
   * so that requests know their calls when they are settled. Otherwise it is done after the attempt.
   */
  readonly noteSuccess: () => void;
  /** Takes the vendor's own counts. The last ones are used. */
  readonly noteUsage: (usage: UpstreamUsage) => void;
  /** Null or absent if the call is not traced. */
  readonly span?: CallSpan | null;
}

export interface RouteCall<T> {
  /** The accounts that the call may be made for, in the order of their turns; a single one if it serves one request. */
  readonly accountIds: () => Iterable<string>;
  /** The catalog's id of the model. */
  readonly model: string;
  /** `chat` by default. */
  readonly operation?: GenAiOperation;
  /** The routes of the model that can serve this request. */
  readonly routes: readonly CatalogRoute[];
  readonly signal: AbortSignal;
  /** The call fails if it has no slot by then; milliseconds since the epoch. */
  readonly deadlineAtMs: number;
  readonly waitLimits: WaitLimits;
  /** `interactive` by default. Waiting calls of an earlier class get a slot first. Read for each attempt. */
  readonly callClass?: CallClass;
  /** Whether `attempt` checks `isKept`, and if it is true, makes sure that somebody still waits for the call. */
  readonly takesKeptSlots?: boolean;
  /**
   * For durable jobs, which wait instead of failing: vendors at their rate limits are retried until the time budget of
   * the call is used up.
   */
  readonly retriesRateLimits: boolean;
  /**
   * Until when the caller can get the failure with its own status, in milliseconds since the epoch. A vendor at its
   * rate limit is not waited for beyond that, unless it said for the first time how long that takes.
   */
  readonly statusUntilMs?: number;
  /** Whether to retry after a vendor timed out. The vendor may still finish the first call, and bills both. */
  readonly retriesTimeouts: boolean;
  /**
   * Whether the caller splits the call after this failure. It is then not repeated as it is, except through other
   * routes.
   */
  readonly isSplitAfter?: (error: UpstreamError) => boolean;
  /** The server failures that do not count yet. By default, those of this call count when it ends. */
  readonly failures?: RequestFailures;
  readonly log: Logger;
  /** Whether any output was sent to the caller; a retry would repeat it. */
  readonly hasOutput: () => boolean;
  /** Those who want to know about each call when it has ended: one per request that it was made for. */
  readonly observers?: () => Iterable<CallObserver>;
  /**
   * Returns a function that loads everything that a call through these routes needs and that is not loaded yet, or null
   * if there is nothing to load. It runs while no slot is held, because the sender of the request controls how long it
   * takes.
   */
  readonly findMissing?: (targets: readonly RouteTarget[]) => (() => Promise<void>) | null;
  readonly attempt: (upstream: Upstream, target: UpstreamTarget, granted: GrantedCall) => Promise<T>;
}

/**
 * Makes one call through the routes: loads what the call needs, acquires a slot, calls, and retries with another
 * candidate on failure. Stops on a response, on a rejection of the request itself, on a failure after output has
 * started, or when the retries are used up.
 * @throws AppError the error for the caller; the signal's reason if it was aborted
 */
export async function callRoute<T>(routing: Routing, call: RouteCall<T>): Promise<T> {
  if (call.routes.length === 0) throw modelDisabled();
  await findMissingOfAll(routing, call)?.();
  const failures = call.failures ?? new RequestFailures(routing.limiter);
  const endTally = routing.tally?.begin(call.model, call.callClass ?? 'interactive');
  try {
    return await callUntilDone(routing, call, failures);
  } finally {
    endTally?.();
    if (call.failures === undefined) failures.count();
  }
}

async function callUntilDone<T>(routing: Routing, call: RouteCall<T>, failures: RequestFailures): Promise<T> {
  const failed = new FailedCalls(call);
  for (;;) {
    const askedAtMs = performance.now();
    const open = withoutDrained(routing, call);
    const slot = await acquireSlot(routing.limiter, open, failed.candidates, failed.remainingMs);
    const waitedMs = performance.now() - askedAtMs;
    if (slot === null)
      throw failed.lastError === null
        ? await noCandidate(routing.limiter, call.routes)
        : toCallerError(failed.lastError);
    // The route may have been drained while the call waited.
    if (routing.isDrained?.(call.model, slot.candidate.route) === true) {
      routing.limiter.release(slot, 'none');
      continue;
    }
    failed.startBudget();
    try {
      const outcome = await callOnce(routing, call, { slot, waitedMs }, failures);
      if ('response' in outcome) return outcome.response;
      await outcome.loadMissing();
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (!(error instanceof UpstreamError)) throw error;
      const history = failed.add(error, slot);
      logFailure(call.log, slot.candidate, error, history.calls);
      if (!mayRetry(error, history)) throw toCallerError(error);
      // The delay rejects with an AbortError; `throwIfAborted` throws the signal's reason instead.
      const backoffMs = chooseBackoffMs(error, history.attempts, Math.random());
      if (backoffMs > 0) await delay(backoffMs, undefined, { signal: call.signal }).catch(() => undefined);
      call.signal.throwIfAborted();
    }
  }
}

/** @throws AppError `model_disabled` if all routes are drained */
function withoutDrained<T>({ isDrained }: Routing, call: RouteCall<T>): RouteCall<T> {
  if (isDrained === undefined) return call;
  const routes = call.routes.filter((route) => !isDrained(call.model, route));
  if (routes.length === call.routes.length) return call;
  if (routes.length === 0) throw modelDisabled();
  return { ...call, routes };
}

/** The failed calls of one request to its routes. */
class FailedCalls {
  readonly candidates: RouteCandidate[] = [];
  readonly #call: RouteCall<unknown>;
  readonly #budgetMs: number;
  #startedAtMs: number | null = null;
  #calls = 0;
  #attempts = 0;
  #lastError: UpstreamError | null = null;

  constructor(call: RouteCall<unknown>) {
    this.#call = call;
    this.#budgetMs = 2 * Math.max(0, ...call.routes.map((route) => route.upstream.timeoutMs));
  }

  get lastError(): UpstreamError | null {
    return this.#lastError;
  }

  /** For how long further calls may still start, in milliseconds. */
  get remainingMs(): number {
    return this.#startedAtMs === null ? Infinity : this.#budgetMs - this.#elapsedMs;
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startedAtMs!;
  }

  /** Starts the time for all calls, if this is the first one. */
  startBudget(): void {
    this.#startedAtMs ??= performance.now();
  }

  add(error: UpstreamError, { candidate }: CallSlot): CallHistory {
    const call = this.#call;
    this.#lastError = error;
    // If the model or address is missing, it is missing for every key of the route.
    this.candidates.push(...(error.failure === 'missing' ? listCandidates(candidate.route) : [candidate]));
    const hasOtherRoute = orderCandidates(call.routes, this.candidates, Math.random).length > 0;
    if (!call.retriesRateLimits || error.failure !== 'rate_limited') {
      this.#calls += 1;
      // A failing key does not count as an attempt while there are other keys to try.
      if (!isKeyFailure(error) || !hasOtherRoute) this.#attempts += 1;
    }
    return {
      calls: this.#calls,
      attempts: this.#attempts,
      elapsedMs: this.#elapsedMs,
      budgetMs: this.#budgetMs,
      hasOutput: call.hasOutput(),
      hasOtherRoute,
      retriesTimeouts: call.retriesTimeouts,
      isSplit: call.isSplitAfter?.(error) ?? false,
      statusLeftMs: (call.statusUntilMs ?? Infinity) - Date.now(),
    };
  }
}

/** How long to wait for candidates that have not failed yet before retrying those that have failed. */
const unfailedWaitMs = 1_500;

/**
 * Acquires a slot. Candidates that failed for this call are retried only if no other becomes available shortly.
 * @param remainingMs no call may start after this many milliseconds
 */
async function acquireSlot<T>(
  limiter: RouteLimiter,
  call: RouteCall<T>,
  failedCandidates: readonly RouteCandidate[],
  remainingMs: number,
): Promise<CallSlot | null> {
  const unfailed = orderCandidates(call.routes, failedCandidates, Math.random);
  if (failedCandidates.length === 0) return await limiter.acquire(unfailed, call);
  const deadlineAtMs = Math.min(call.deadlineAtMs, Date.now() + remainingMs);
  const acquire = async (
    candidates: readonly RouteCandidate[],
    maxWaitMs: number,
  ): Promise<CallSlot | null> => {
    const waitLimits = {
      keyMs: Math.min(call.waitLimits.keyMs, maxWaitMs),
      breakerMs: Math.min(call.waitLimits.breakerMs, maxWaitMs),
    };
    return await limiter.acquire(candidates, {
      accountIds: call.accountIds,
      signal: call.signal,
      deadlineAtMs,
      waitLimits,
      model: call.model,
      ...(call.callClass !== undefined && { callClass: call.callClass }),
    });
  };
  try {
    const slot =
      unfailed.length === 0 ? null : await acquire(unfailed, Math.min(unfailedWaitMs, remainingMs));
    return slot ?? (await acquire(orderCandidates(call.routes, [], Math.random), remainingMs));
  } catch (error) {
    // The vendor's failure is more useful to the caller than the expired deadline.
    if (error instanceof AppError && error.code === 'deadline_exceeded') return null;
    throw error;
  }
}

/** Finds what is missing for all routes before a slot is acquired, so that the call waits for a slot only once. */
function findMissingOfAll<T>({ upstreams }: Routing, call: RouteCall<T>): (() => Promise<void>) | null {
  const { findMissing, routes } = call;
  if (findMissing === undefined) return null;
  return findMissing(routes.map((route) => findTarget(upstreams, route, null)));
}

/** The response, or a function that loads what the route still needs. The slot has been released before it runs. */
type CallResult<T> = { readonly response: T } | { readonly loadMissing: () => Promise<void> };

async function callOnce<T>(
  { upstreams, limiter, onCallEnded, tracing = null }: Routing,
  call: RouteCall<T>,
  { slot, waitedMs }: { readonly slot: CallSlot; readonly waitedMs: number },
  failures: RequestFailures,
): Promise<CallResult<T>> {
  const { route, apiKey } = slot.candidate;
  let accountIds: readonly string[] = [slot.accountId];
  const startedAtMs = performance.now();
  const span = tracing === null ? null : createSpan(tracing, call, { route, startedAtMs, waitedMs });
  let usage: UpstreamUsage | null = null;
  let isNoted = false;
  const noteEnd = ({ end, status, reason }: Pick<EndedCall, 'end' | 'status' | 'reason'>): void => {
    if (isNoted) return;
    isNoted = true;
    const callClass = call.callClass ?? 'interactive';
    const times = { waitedMs, startedAtMs, durationMs: performance.now() - startedAtMs };
    const ended = { model: call.model, route, callClass, end, status, reason, usage, ...times };
    onCallEnded?.(ended);
    for (const observer of call.observers?.() ?? []) observer.noteCall(ended);
    span?.end(end, end === 'success' ? null : status);
  };
  failures.count(route.id);
  try {
    const { upstream, target } = findTarget(upstreams, route, apiKey);
    const loadMissing = call.findMissing?.([{ upstream, target }]) ?? null;
    if (loadMissing !== null) {
      limiter.release(slot, 'none');
      return { loadMissing };
    }
    const response = await call.attempt(upstream, target, {
      accountId: slot.accountId,
      route,
      isKept: () => limiter.isKept(slot),
      spareSlots: slot.spareSlots,
      slots: slot.slots,
      reportHealthy: () => limiter.confirm(slot),
      isContested: () => limiter.isContested(slot),
      acquireExtraSlot: (signal) => acquireExtraSlot({ limiter, failures }, call, slot, signal),
      setServedAccounts: (shared) => {
        accountIds = [...shared];
      },
      noteSuccess: () => noteEnd(success),
      noteUsage: (reported) => {
        usage = reported;
        span?.noteUsage(reported);
      },
      span,
    });
    if (call.failures === undefined) failures.count();
    limiter.release(slot, 'ok', null, accountIds);
    noteEnd(success);
    return { response };
  } catch (error) {
    releaseFailed({ limiter, failures }, slot, error, accountIds);
    noteEnd(describeEnd(error));
    throw error;
  }
}

const success = { end: 'success', status: 200, reason: null } as const;

function describeEnd(error: unknown): Pick<EndedCall, 'end' | 'status' | 'reason'> {
  if (error instanceof UpstreamError) {
    const { failure, status, message } = error;
    return { end: failure, status, reason: message };
  }
  const cause = error instanceof AppError ? error.cause : null;
  const reason = cause instanceof UpstreamError ? cause.message : 'cancelled';
  return { end: 'cancelled', status: null, reason };
}

const noObservers = (): Iterable<CallObserver> => [];

function createSpan<T>(
  tracing: Tracing,
  { operation = 'chat', observers = noObservers }: RouteCall<T>,
  call: Pick<EndedCall, 'route' | 'startedAtMs' | 'waitedMs'>,
): CallSpan {
  return new CallSpan(tracing, { operation, observers, ...call });
}

function findTarget(upstreams: UpstreamPool, route: CatalogRoute, apiKey: string | null): RouteTarget {
  const { model, profile, drops, accepts, thinking, upstream } = route;
  return {
    upstream: upstreams.get(upstream),
    target: { model, apiKey, profile, drops, accepts, thinking, imageUrls: upstream.imageUrls },
  };
}

/** A missing model or address is logged as an error: the catalog is wrong, or the vendor retired the model. */
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
  if (failure === 'missing')
    log.error(
      fields,
      'route misconfigured: the upstream lacks the model or path, or returns vectors of another length',
    );
  else log.warn(fields, 'upstream call failed');
}
