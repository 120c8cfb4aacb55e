import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { modelDisabled } from '../../shared/contract/model-errors.ts';
import type { RouteGrant } from '../../shared/routing/grant-script.ts';
import { findWays, type RouteWay } from '../../shared/routing/route-way.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { UpstreamError, type EnterAgain, type Upstream, type UpstreamTarget } from '../upstreams/upstream.ts';
import { enterAgain, leaveFailed } from './further-slot.ts';
import { orderWays } from './order-ways.ts';
import { chooseBackoffMs, isOfKey, mayRetry } from './retry-policy.ts';
import type { Patience } from './gate-queue.ts';
import type { RouteGate } from './route-gate.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** What calls are made with; one for each worker process. */
export interface Routing {
  readonly upstreams: UpstreamPool;
  readonly gate: RouteGate;
}

/** A route's upstream, and how it is called there. */
export interface RouteTarget {
  readonly upstream: Upstream;
  readonly target: UpstreamTarget;
}

/** The moment in which a call may be made. */
export interface Chance {
  /** The account that the slot was granted to. */
  readonly accountId: string;
  /** The route that is called. */
  readonly route: CatalogRoute;
  /** How many further calls could be made beside it. */
  readonly spareSlots: number;
  /** How many calls there may be at once. */
  readonly slots: number;
  /** To be called once the vendor has begun to answer well, where the answer takes its time. */
  readonly onAlive: () => void;
  /** Whether another account waits for the slot that this call holds. One trip to Redis. */
  readonly isContested: () => Promise<boolean>;
  /** Waits for a further slot of the same way, for a call beside this one. */
  readonly enterAgain: EnterAgain;
  /** To be told of a call that is made for other accounts than that one: how it ends speaks for all of them. */
  readonly onShared: (accountIds: Iterable<string>) => void;
}

export interface RouteCall<T> {
  /** The accounts that it may be made for, in the order of their turns: one where it is one request's. */
  readonly accountIds: () => Iterable<string>;
  /** Those of the model's that can serve this request. */
  readonly routes: readonly CatalogRoute[];
  readonly signal: AbortSignal;
  /** A call that got no slot of its upstream by then is given up; milliseconds of the epoch. */
  readonly deadlineAtMs: number;
  readonly patience: Patience;
  /** Nobody waits at a socket for it: calls that somebody waits for go first. */
  readonly isBackground?: boolean;
  /** A durable job rather waits than fails: vendors at their limits are asked again for as long as calls may take. */
  readonly outlastsLimits: boolean;
  /** Whether another call is made where a vendor that was asked took too long: it may go on, and charges for either. */
  readonly outlastsTimeouts: boolean;
  readonly log: Logger;
  /** Once anything went out to the caller, a second try would repeat it. */
  readonly hasOutput: () => boolean;
  /**
   * Answers what loads whatever a call needs by all of these routes and that is not there yet; null where that is
   * nothing. It is loaded while no slot is held, for who sent the request says how long that takes.
   */
  readonly findMissing?: (targets: readonly RouteTarget[]) => (() => Promise<void>) | null;
  readonly attempt: (upstream: Upstream, target: UpstreamTarget, chance: Chance) => Promise<T>;
}

/**
 * Makes one call through the routes: load what it needs, wait until one may be called, call, and on failure choose
 * again, until an answer, a refusal of the request itself, output, or the end of the tries.
 * @throws AppError what the caller is told; the signal's reason where it was aborted
 */
export async function callRoute<T>(routing: Routing, call: RouteCall<T>): Promise<T> {
  if (call.routes.length === 0) throw modelDisabled();
  await findMissingOfAll(routing, call)?.();
  const failed: RouteWay[] = [];
  const budgetMs = 2 * Math.max(0, ...call.routes.map((route) => route.upstream.timeoutMs));
  let startedAtMs: number | null = null;
  let attempts = 0;
  let calls = 0;
  let last: UpstreamError | null = null;
  for (;;) {
    const leftMs = startedAtMs === null ? Infinity : budgetMs - (performance.now() - startedAtMs);
    const grant = await enterGate(routing.gate, call, failed, leftMs);
    if (grant === null) throw last === null ? nothingToCall() : toCallerError(last);
    startedAtMs ??= performance.now();
    try {
      const outcome = await callOnce(routing, call, grant);
      if ('answer' in outcome) return outcome.answer;
      await outcome.loadMissing();
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (!(error instanceof UpstreamError)) throw error;
      last = error;
      // A route that leads nowhere does so with every key.
      failed.push(...(error.failure === 'missing' ? findWays(grant.way.route) : [grant.way]));
      const isLast = orderWays(call.routes, failed, Math.random).length === 0;
      if (!call.outlastsLimits || error.failure !== 'rate_limited') {
        calls += 1;
        // A key at fault is tried past while there are others.
        if (!isOfKey(error) || isLast) attempts += 1;
      }
      tellFailure(call.log, grant.way, error, calls);
      const elapsedMs = performance.now() - startedAtMs;
      const hasOutput = call.hasOutput();
      const { outlastsTimeouts } = call;
      const tries = { calls, attempts, elapsedMs, budgetMs };
      const history = { ...tries, hasOutput, hasOtherRoute: !isLast, outlastsTimeouts };
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
  const fresh = orderWays(call.routes, failed, Math.random);
  if (failed.length === 0) return await gate.enter(fresh, call);
  const deadlineAtMs = Math.min(call.deadlineAtMs, Date.now() + leftMs);
  const enter = async (ways: readonly RouteWay[], mostMs: number): Promise<RouteGrant | null> => {
    const patience = {
      keyMs: Math.min(call.patience.keyMs, mostMs),
      breakerMs: Math.min(call.patience.breakerMs, mostMs),
    };
    return await gate.enter(ways, {
      accountIds: call.accountIds,
      signal: call.signal,
      deadlineAtMs,
      patience,
      ...(call.isBackground === true && { isBackground: true }),
    });
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

/** What whichever route is called needs is loaded ahead of the gate, so that its slot is waited for once. */
function findMissingOfAll<T>({ upstreams }: Routing, call: RouteCall<T>): (() => Promise<void>) | null {
  const { findMissing, routes } = call;
  if (findMissing === undefined) return null;
  return findMissing(routes.map((route) => findTarget(upstreams, route, null)));
}

/** The answer, or what is to be loaded before the route can be called: its slot has been given back for that long. */
type CallOutcome<T> = { readonly answer: T } | { readonly loadMissing: () => Promise<void> };

async function callOnce<T>(
  { upstreams, gate }: Routing,
  call: RouteCall<T>,
  grant: RouteGrant,
): Promise<CallOutcome<T>> {
  const { route, apiKey } = grant.way;
  let accountIds: readonly string[] = [grant.accountId];
  try {
    const { upstream, target } = findTarget(upstreams, route, apiKey);
    const loadMissing = call.findMissing?.([{ upstream, target }]) ?? null;
    if (loadMissing !== null) {
      gate.leave(grant, 'none');
      return { loadMissing };
    }
    const answer = await call.attempt(upstream, target, {
      accountId: grant.accountId,
      route,
      spareSlots: grant.spareSlots,
      slots: grant.slots,
      onAlive: () => gate.confirm(grant),
      isContested: () => gate.isContested(grant),
      enterAgain: (signal) => enterAgain(gate, call, grant, signal),
      onShared: (shared) => {
        accountIds = [...shared];
      },
    });
    gate.leave(grant, 'ok', null, accountIds);
    return { answer };
  } catch (error) {
    leaveFailed(gate, grant, error, accountIds);
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

/** A route that leads nowhere is a mistake of the catalog, or a model that its vendor took away. */
function tellFailure(
  log: Logger,
  { route, fingerprint }: RouteWay,
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

/** What a caller is told of a vendor's failure: its own words only where it refused the caller's own request. */
function toCallerError(error: UpstreamError): AppError {
  switch (error.failure) {
    case 'rejected':
    case 'missing':
      return new AppError('upstream_rejected', { message: error.message, cause: error });
    case 'too_large':
      // The vendor's own words name the operator's account.
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
