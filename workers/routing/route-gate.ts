import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import {
  runGrant,
  slotsOf,
  type GrantAnswer,
  type GrantPause,
  type RouteGrant,
} from '../../shared/routing/grant-script.ts';
import {
  confirmProbe,
  runOutcome,
  type RouteVerdict,
  type SetAside,
} from '../../shared/routing/outcome-script.ts';
import { runRenewal } from '../../shared/routing/renew-script.ts';
import type { RouteWay } from '../../shared/routing/route-way.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

/** Slots that other workers give back are seen by asking again; those of this process prompt it. */
const askAgainMs = { first: 10, longest: 100 };
/** The slots of a worker that died are free after so long. */
const defaultLeaseMs = 30_000;
const redisAwayPauseMs = 250;
/** A timer that is set for longer fires at once. */
const longestTimerMs = 2 ** 31 - 1;
const closedMessage = 'a route is well again: its circuit breaker closed';

/** How long a request waits for where none of its ways can be called for the moment. */
export interface Patience {
  /** Until a key that is set aside is in use again: its vendor said when, and can be believed. */
  readonly keyMs: number;
  /** Until a breaker that is open lets a probe through: whether that one finds the route well nobody knows. */
  readonly breakerMs: number;
}

export interface GateLimits {
  readonly signal: AbortSignal;
  /** A call that got no slot by then is given up; milliseconds of the epoch. */
  readonly deadlineAtMs: number;
  readonly patience: Patience;
}

interface Waiter extends GateLimits {
  readonly ways: readonly RouteWay[];
  /** Since when a pause is all that it waits for; null while slots are what is lacking. */
  pausedAtMs: number | null;
  readonly settle: (result: { grant: RouteGrant | null } | { error: unknown }) => void;
}

/** Those who wait for the same ways, in the order they came; one of them asks for all. */
interface Line {
  readonly waiters: Waiter[];
  wake: () => void;
}

/**
 * The one way in to the upstreams: what may be called now is known to Redis, for all workers together. Who finds
 * everything taken waits in line here.
 */
export class RouteGate implements Running {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  readonly #log: Logger;
  readonly #lines = new Map<string, Line>();
  readonly #held = new Set<RouteGrant>();
  /** Probes that have been said to answer well. */
  readonly #confirmed = new WeakSet<RouteGrant>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #leaseMs: number;
  readonly #renewing: NodeJS.Timeout;
  #count = 0;
  #isStopping = false;

  constructor(redis: RedisClient, workerId: string, log: Logger, leaseMs = defaultLeaseMs) {
    this.#redis = redis;
    this.#workerId = workerId;
    this.#log = log;
    this.#leaseMs = leaseMs;
    this.#renewing = setInterval(() => void this.#renew(), leaseMs / 3);
    this.#renewing.unref();
  }

  /**
   * Waits until one of the ways may be called; null where none will be within the patience. Who enters must leave.
   * @throws AppError `deadline_exceeded`; the signal's reason
   */
  async enter(ways: readonly RouteWay[], limits: GateLimits): Promise<RouteGrant | null> {
    limits.signal.throwIfAborted();
    const name = nameLine(ways);
    const line = this.#lines.get(name);
    // Who comes later does not pass those who wait.
    if (line === undefined) {
      const answer = await this.#ask(ways);
      if (answer?.outcome === 'granted') return this.#hand(answer.grant, limits.signal);
      if (answer?.outcome === 'paused' && !isWorthWaiting(answer, limits.patience, 0)) return null;
      limits.signal.throwIfAborted();
    }
    return await this.#waitInLine(name, ways, limits);
  }

  /** A probe has begun to answer: its route is well, and others need not wait for its end. */
  confirm(grant: RouteGrant): void {
    if (!grant.isProbe || this.#confirmed.has(grant)) return;
    this.#confirmed.add(grant);
    const fields = { route: grant.way.route.id, upstream: grant.way.route.upstream.name };
    confirmProbe(this.#redis, grant).then(
      (isClosed) => {
        if (isClosed) this.#log.info(fields, closedMessage);
        for (const line of this.#lines.values()) line.wake();
      },
      (error: unknown) => this.#log.debug({ ...fields, err: error }, 'a probe could not be confirmed'),
    );
  }

  /** The call is over, however it went. Never rejects, and need not be waited for. */
  leave(grant: RouteGrant, verdict: RouteVerdict, setAside: SetAside | null = null): void {
    this.#held.delete(grant);
    const leaving = this.#tell(grant, verdict, setAside).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  async stop(): Promise<void> {
    clearInterval(this.#renewing);
    this.#isStopping = true;
    await Promise.all(this.#leaving);
  }

  async #tell(grant: RouteGrant, verdict: RouteVerdict, setAside: SetAside | null): Promise<void> {
    const { route, fingerprint } = grant.way;
    const fields = { route: route.id, upstream: route.upstream.name };
    try {
      const change = await this.#throughOutage(() => runOutcome(this.#redis, grant, verdict, setAside));
      if (change === 'opened') this.#log.warn(fields, 'a route fails too often: its circuit breaker opened');
      if (change === 'closed') this.#log.info(fields, closedMessage);
      if (setAside !== null && setAside.reason.startsWith('refused')) {
        const { forMs, reason } = setAside;
        this.#log.error({ ...fields, key: fingerprint, forMs, reason }, 'a key of an upstream is set aside');
      }
    } catch (error) {
      // The slots are leases: they come back by themselves.
      this.#log.debug({ ...fields, err: error }, 'the outcome of a call could not be told');
    }
    for (const line of this.#lines.values()) line.wake();
  }

  /** Null where Redis is away: then nobody can say, and it is asked again. */
  async #ask(ways: readonly RouteWay[]): Promise<GrantAnswer | null> {
    const lease = `${this.#workerId}:${(this.#count += 1)}`;
    try {
      return await callRedis(() => runGrant(this.#redis, ways, lease, this.#leaseMs));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#log.debug({ err: error }, 'waiting for Redis');
      this.#giveBack(ways, lease);
      return null;
    }
  }

  /** A grant whose answer was lost on its way may hold slots that nobody knows of. */
  #giveBack(ways: readonly RouteWay[], lease: string): void {
    const keys = [...new Set(ways.flatMap((way) => slotsOf(way).keys))];
    const leaving = this.#throughOutage(() => Promise.all(keys.map((key) => this.#redis.zrem(key, lease))))
      .catch((error: unknown) => this.#log.debug({ err: error }, 'slots could not be given back'))
      .then(() => void this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** What ended while Redis was away is told when it is back; by the end of its lease it need not be told any more. */
  async #throughOutage<T>(tell: () => Promise<T>): Promise<T> {
    const untilMs = performance.now() + this.#leaseMs;
    for (;;) {
      try {
        return await callRedis(tell);
      } catch (error) {
        const isOver = this.#isStopping || performance.now() > untilMs;
        if (!(error instanceof AppError) || isOver) throw error;
        await delay(redisAwayPauseMs);
      }
    }
  }

  #hand(grant: RouteGrant, signal: AbortSignal): RouteGrant {
    this.#held.add(grant);
    if (!signal.aborted) return grant;
    this.leave(grant, 'none');
    throw signal.reason;
  }

  async #waitInLine(name: string, ways: readonly RouteWay[], limits: GateLimits): Promise<RouteGrant | null> {
    let line = this.#lines.get(name);
    const isFirst = line === undefined;
    line ??= { waiters: [], wake: () => undefined };
    this.#lines.set(name, line);
    const waiting = this.#join(line, ways, limits);
    if (isFirst) void this.#serve(name, line);
    const grant = await waiting;
    return grant === null ? null : this.#hand(grant, limits.signal);
  }

  async #join(line: Line, ways: readonly RouteWay[], limits: GateLimits): Promise<RouteGrant | null> {
    const { signal, deadlineAtMs } = limits;
    return await new Promise((resolve, reject) => {
      const waiter: Waiter = {
        ...limits,
        ways,
        pausedAtMs: null,
        settle: (result) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
          const place = line.waiters.indexOf(waiter);
          if (place >= 0) line.waiters.splice(place, 1);
          if ('grant' in result) resolve(result.grant);
          else reject(result.error);
        },
      };
      const onAbort = (): void => waiter.settle({ error: signal.reason });
      const timer = setTimeout(
        () => waiter.settle({ error: new AppError('deadline_exceeded') }),
        Math.min(longestTimerMs, Math.max(0, deadlineAtMs - Date.now())),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      line.waiters.push(waiter);
    });
  }

  /** Asks for the first in line until nobody is left. */
  async #serve(name: string, line: Line): Promise<void> {
    let pauseMs = askAgainMs.first;
    try {
      for (let head = line.waiters[0]; head !== undefined; head = line.waiters[0]) {
        const woken = new Promise<void>((resolve) => {
          line.wake = resolve;
        });
        const answer = await this.#ask(head.ways);
        if (answer?.outcome === 'granted') {
          // The first may have left meanwhile: then the slot is the next one's.
          const next = line.waiters[0];
          if (next === undefined) this.leave(answer.grant, 'none');
          else next.settle({ grant: answer.grant });
          pauseMs = askAgainMs.first;
          continue;
        }
        if (answer?.outcome === 'paused') this.#sendAway(line, answer);
        if (answer?.outcome === 'busy') for (const waiter of line.waiters) waiter.pausedAtMs = null;
        const waitMs = answer === null ? redisAwayPauseMs : pauseMs;
        pauseMs = Math.min(askAgainMs.longest, pauseMs * 2);
        await Promise.race([woken, delay(waitMs * (0.5 + Math.random() / 2))]);
      }
    } catch (error) {
      for (const waiter of line.waiters.slice()) waiter.settle({ error });
    } finally {
      this.#lines.delete(name);
    }
  }

  /** Whoever would not wait for the end of a pause is told now; how long he stood in the queue before does not count. */
  #sendAway(line: Line, pause: GrantPause): void {
    const nowMs = performance.now();
    const impatient = line.waiters.filter((one) => {
      one.pausedAtMs ??= nowMs;
      return !isWorthWaiting(pause, one.patience, nowMs - one.pausedAtMs);
    });
    for (const waiter of impatient) waiter.settle({ grant: null });
  }

  /** Also puts back the leases that a Redis without its memory has lost. */
  async #renew(): Promise<void> {
    const byKey = new Map<string, string[]>();
    for (const { way, lease } of this.#held) {
      const { keys, limits } = slotsOf(way);
      for (const [i, key] of keys.entries()) {
        if (limits[i] === 0) continue;
        const leases = byKey.get(key) ?? [];
        leases.push(lease);
        byKey.set(key, leases);
      }
    }
    try {
      await Promise.all(
        [...byKey].map(([key, leases]) => runRenewal(this.#redis, key, leases, this.#leaseMs)),
      );
    } catch (error) {
      this.#log.debug({ err: error }, 'leases of calls could not be renewed');
    }
  }
}

/** @param waitedMs how long it has waited for pauses already */
function isWorthWaiting({ keyMs, breakerMs }: GrantPause, patience: Patience, waitedMs: number): boolean {
  return (
    (keyMs !== null && waitedMs + keyMs <= patience.keyMs) ||
    (breakerMs !== null && waitedMs + breakerMs <= patience.breakerMs)
  );
}

function nameLine(ways: readonly RouteWay[]): string {
  return ways
    .map(({ route, fingerprint }) => `${route.id} ${fingerprint}`)
    .sort()
    .join('\n');
}
