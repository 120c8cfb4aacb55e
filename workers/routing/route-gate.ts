import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { AppError } from '../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import { throughOutage } from '../../shared/redis/through-outage.ts';
import { isContested } from '../../shared/routing/contested-script.ts';
import {
  maxAccountsPerGrant,
  runGrant,
  type GrantAnswer,
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
import { nameLease, slotsOf } from '../../shared/routing/way-keys.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { closedMessage, logOutcome } from './log-outcome.ts';
import { GateQueue, isWorthWaiting, nameLine, nameLineAhead, type GateLimits } from './gate-queue.ts';

/** Slots that other workers give back are seen by asking again; those of this process prompt it. */
const askAgainMs = { first: 10, longest: 100 };
/** The slots of a worker that died are free after so long. */
const defaultLeaseMs = 30_000;
const redisAwayPauseMs = 250;
/** One that is forgotten gets its next turn early. */
const maxRememberedAccounts = 10_000;

/**
 * The one way in to the upstreams: what may be called now is known to Redis, for all workers together. Calls that find
 * all slots taken wait here, where accounts take turns.
 */
export class RouteGate implements Running {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  readonly #log: Logger;
  readonly #lines = new Map<string, GateQueue>();
  readonly #held = new Set<RouteGrant>();
  /** Probes that have been said to answer well. */
  readonly #confirmed = new WeakSet<RouteGrant>();
  readonly #leaving = new Set<Promise<unknown>>();
  readonly #leaseMs: number;
  readonly #renewing: NodeJS.Timeout;
  #count = 0;
  /** When each account was granted a slot last, in numbers of grants. */
  readonly #grantedAt = new LRUCache<string, number>({ max: maxRememberedAccounts });
  #grants = 0;
  #isStopping = false;
  #isHandedBack = false;

  constructor(redis: RedisClient, workerId: string, log: Logger, leaseMs = defaultLeaseMs) {
    this.#redis = redis;
    this.#workerId = workerId;
    this.#log = log;
    this.#leaseMs = leaseMs;
    this.#renewing = setInterval(() => runInBackground(this.#renew(), 'renewing leases', log), leaseMs / 3);
    this.#renewing.unref();
  }

  /**
   * Waits until one of the ways may be called; null where none will be within the patience. Who enters must leave.
   * @throws AppError `deadline_exceeded`; the signal's reason
   */
  async enter(ways: readonly RouteWay[], limits: GateLimits): Promise<RouteGrant | null> {
    limits.signal.throwIfAborted();
    const { isBackground = false } = limits;
    const name = nameLine(ways, isBackground);
    // A call that comes later does not pass those that wait.
    if (!this.#lines.has(name) && !this.#isBehind(name)) {
      const asked = firstOf(limits.accountIds(), maxAccountsPerGrant);
      const answer = await this.#ask(ways, asked, isBackground);
      if (answer?.outcome === 'granted') return await this.#hand(answer.grant, limits.signal);
      // Nothing is known of accounts that came meanwhile, and of those beyond the first few.
      const isForAll = [...limits.accountIds()].every((id) => asked.includes(id));
      if (answer?.outcome === 'paused' && isForAll && !isWorthWaiting(answer, limits.patience, 0))
        return null;
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
        this.#wakeLines();
      },
      (error: unknown) => this.#log.debug({ ...fields, err: error }, 'a probe could not be confirmed'),
    );
  }

  /** Whether another account waits for what this call holds. While Redis is away nobody can say, and it is not. */
  async isContested(grant: RouteGrant): Promise<boolean> {
    try {
      return await callRedis(() => isContested(this.#redis, grant));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return false;
    }
  }

  /**
   * The call is over, however it went. Never rejects, and need not be waited for.
   * @param accountIds whose requests it was made for
   */
  leave(
    grant: RouteGrant,
    verdict: RouteVerdict,
    setAside: SetAside | null = null,
    accountIds: readonly string[] = [grant.accountId],
  ): void {
    this.#held.delete(grant);
    this.#follow(this.#tell(grant, verdict, setAside, accountIds));
  }

  async stop(): Promise<void> {
    clearInterval(this.#renewing);
    this.#isStopping = true;
    await Promise.all(this.#leaving);
  }

  /**
   * The process ends now, with calls under way: gives back their slots, which would otherwise be taken until their leases
   * run out. Whoever waits, or comes, waits until the process has ended: the requests run again elsewhere.
   */
  async handBack(): Promise<void> {
    clearInterval(this.#renewing);
    this.#isStopping = true;
    this.#isHandedBack = true;
    for (const grant of this.#held) this.leave(grant, 'none');
    // Redis has answered everything that it was asked before.
    await callRedis(() => this.#redis.ping());
    await nextTurn();
    await Promise.all(this.#leaving);
  }

  async #tell(
    grant: RouteGrant,
    verdict: RouteVerdict,
    setAside: SetAside | null,
    accountIds: readonly string[],
  ): Promise<void> {
    try {
      const outcome = await this.#throughOutage(() =>
        runOutcome(this.#redis, grant, verdict, setAside, accountIds),
      );
      logOutcome(this.#log, grant.way, outcome, setAside, accountIds);
    } catch (error) {
      // The slots are leases: they come back by themselves.
      this.#log.debug({ route: grant.way.route.id, err: error }, 'the outcome of a call could not be told');
    }
    this.#wakeLines();
  }

  /**
   * A slot may have come free, and mostly goes to the line that asks for it first. Models of one upstream have lines of
   * their own: in another order than that of their accounts' turns, a busy model would get every slot.
   */
  #wakeLines(): void {
    const turnOf = (name: string, line: GateQueue): number =>
      nameLineAhead(name) === null ? (this.#grantedAt.get(line.nextAccountIds(1)[0] ?? '') ?? 0) : Infinity;
    const lines = Array.from(this.#lines, ([name, line]) => ({ line, turn: turnOf(name, line) }));
    for (const { line } of lines.sort((a, b) => compareTurns(a.turn, b.turn))) line.wake();
  }

  /** Whether calls that go first wait here for the same ways. */
  #isBehind(name: string): boolean {
    const ahead = nameLineAhead(name);
    return ahead !== null && this.#lines.has(ahead);
  }

  /** Null where Redis is away: then nobody can say, and it is asked again. */
  async #ask(
    ways: readonly RouteWay[],
    accountIds: readonly string[],
    isBackground: boolean,
  ): Promise<GrantAnswer | null> {
    if (this.#isHandedBack) return null;
    const lease = `${this.#workerId}:${(this.#count += 1)}`;
    try {
      return await callRedis(() =>
        runGrant(this.#redis, ways, accountIds, lease, this.#leaseMs, isBackground),
      );
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#log.debug({ err: error }, 'waiting for Redis');
      this.#giveBack(
        ways,
        accountIds.map((accountId) => nameLease(accountId, lease)),
      );
      return null;
    }
  }

  /** A grant whose answer was lost on its way may hold slots that nobody knows of. */
  #giveBack(ways: readonly RouteWay[], leases: readonly string[]): void {
    const keys = [...new Set(ways.flatMap((way) => slotsOf(way).keys))];
    const removing = this.#throughOutage(() =>
      Promise.all(keys.map((key) => this.#redis.zrem(key, ...leases))),
    );
    this.#follow(
      removing.catch((error: unknown) => this.#log.debug({ err: error }, 'slots could not be given back')),
    );
  }

  /** Stopping waits for it. */
  #follow(work: Promise<unknown>): void {
    const leaving = work.finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
    runInBackground(leaving, 'giving a slot back', this.#log);
  }

  /** What ended while Redis was away is told when it is back; by the end of its lease it need not be told any more. */
  async #throughOutage<T>(tell: () => Promise<T>): Promise<T> {
    const untilMs = performance.now() + this.#leaseMs;
    return await throughOutage(() => callRedis(tell), {
      isOutage: (error) => error instanceof AppError && !this.#isStopping && performance.now() <= untilMs,
      pauseMs: redisAwayPauseMs,
    });
  }

  async #hand(grant: RouteGrant, signal: AbortSignal): Promise<RouteGrant> {
    this.#held.add(grant);
    this.#grantedAt.set(grant.accountId, (this.#grants += 1));
    if (!signal.aborted && !this.#isHandedBack) return grant;
    this.leave(grant, 'none');
    signal.throwIfAborted();
    // It was asked for before: no call is begun that the end of the process would cut.
    return await new Promise<never>(() => undefined);
  }

  async #waitInLine(name: string, ways: readonly RouteWay[], limits: GateLimits): Promise<RouteGrant | null> {
    let line = this.#lines.get(name);
    const isFirst = line === undefined;
    line ??= new GateQueue();
    this.#lines.set(name, line);
    const waiting = line.wait(ways, limits);
    if (isFirst) runInBackground(this.#serve(name, line), 'asking for slots', this.#log);
    const grant = await waiting;
    return grant === null ? null : await this.#hand(grant, limits.signal);
  }

  /** Asks for those whose turns are next until nobody is left. */
  async #serve(name: string, line: GateQueue): Promise<void> {
    let pauseMs = askAgainMs.first;
    // Accounts in front for which all is paused must not keep others from being asked for.
    let skipped = 0;
    try {
      for (let ways = line.nextWays(); ways !== null; ways = line.nextWays()) {
        const woken = line.woken();
        const asked = line.nextAccountIds(maxAccountsPerGrant, skipped);
        const isBackground = nameLineAhead(name) !== null;
        const answer: GrantAnswer | null = this.#isBehind(name)
          ? { outcome: 'busy' }
          : await this.#ask(ways, asked, isBackground);
        const isPaused = answer?.outcome === 'paused';
        skipped = isPaused && asked.length === maxAccountsPerGrant ? skipped + maxAccountsPerGrant : 0;
        if (answer?.outcome === 'granted') {
          // The account's calls may have left meanwhile: then the slot is free again.
          if (!line.grant(answer.grant)) this.leave(answer.grant, 'none');
          pauseMs = askAgainMs.first;
          continue;
        }
        if (answer?.outcome === 'paused') line.pause(answer, asked);
        if (answer?.outcome === 'busy') line.unpause();
        const waitMs = answer === null ? redisAwayPauseMs : pauseMs;
        pauseMs = Math.min(askAgainMs.longest, pauseMs * 2);
        await Promise.race([woken, delay(waitMs * (0.5 + Math.random() / 2))]);
      }
    } catch (error) {
      line.failAll(error);
    } finally {
      this.#lines.delete(name);
    }
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

/** Of infinite ones none is before the other. */
const compareTurns = (a: number, b: number): number => (a === b ? 0 : a - b);

function firstOf<T>(all: Iterable<T>, most: number): T[] {
  const first: T[] = [];
  for (const one of all) if (first.push(one) === most) break;
  return first;
}
