import { AppError } from '../../shared/contract/errors.ts';
import { FairQueue, type QueueEntry } from '../../shared/fairness/fair-queue.ts';
import type { GrantPause, RouteGrant } from '../../shared/routing/grant-script.ts';
import { longestTimerMs } from '../../shared/runtime/timers.ts';
import type { RouteWay } from '../../shared/routing/route-way.ts';

/** How long a request waits for where none of its ways can be called for the moment. */
export interface Patience {
  /** Until a key that is set aside is in use again: its vendor said when, and can be believed. */
  readonly keyMs: number;
  /** Until a breaker that is open lets a probe through: whether that one finds the route well nobody knows. */
  readonly breakerMs: number;
}

export interface GateLimits {
  /** The accounts that the slot may be for, in the order of their turns; asked for again as long as it waits. */
  readonly accountIds: () => Iterable<string>;
  readonly signal: AbortSignal;
  /** A call that got no slot by then is given up; milliseconds of the epoch. */
  readonly deadlineAtMs: number;
  readonly patience: Patience;
  /** Nobody waits at a socket for it: those that somebody waits for go first. */
  readonly isBackground?: boolean;
}

interface Waiter extends GateLimits {
  readonly ways: readonly RouteWay[];
  readonly sinceMs: number;
  readonly settle: (result: { grant: RouteGrant | null } | { error: unknown }) => void;
}

/** Calls of one process that wait for slots of the same ways; accounts take turns. */
export class GateQueue {
  readonly #waiters = new FairQueue<Waiter>();
  /** Since when pauses are all that they wait for; null while slots are what is lacking. */
  #pausedAtMs: number | null = null;
  /** Accounts that were asked for since, and had none of the ways. */
  readonly #pausedIds = new Set<string>();
  #wake = (): void => undefined;

  /** Resolves with the slot, or with null where none will be free within the call's patience. */
  async wait(ways: readonly RouteWay[], limits: GateLimits): Promise<RouteGrant | null> {
    const { accountIds, signal, deadlineAtMs } = limits;
    return await new Promise((resolve, reject) => {
      const onAbort = (): void => waiter.settle({ error: signal.reason });
      const timer = setTimeout(
        () => waiter.settle({ error: new AppError('deadline_exceeded') }),
        Math.min(longestTimerMs, Math.max(0, deadlineAtMs - Date.now())),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      const waiter: Waiter = {
        ...limits,
        ways,
        sinceMs: performance.now(),
        settle: (result) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
          this.#waiters.remove(entry);
          if ('grant' in result) resolve(result.grant);
          else reject(result.error);
        },
      };
      const [accountId = ''] = accountIds();
      const entry: QueueEntry<Waiter> = this.#waiters.add(accountId, waiter);
    });
  }

  /** The ways in the order of the call whose turn is next; null where nothing waits. */
  nextWays(): readonly RouteWay[] | null {
    return this.#waiters.peek()?.item.ways ?? null;
  }

  /**
   * The accounts that wait, in the order of their turns, without the first of them that are to be skipped; from the
   * first again where no more are left.
   */
  nextAccountIds(most: number, skipped = 0): string[] {
    const accountIds = new Set<string>();
    for (const { item } of this.#waiters.heads()) {
      for (const accountId of item.accountIds()) {
        accountIds.add(accountId);
        if (accountIds.size === skipped + most) return [...accountIds].slice(skipped);
      }
    }
    const ids = [...accountIds];
    return ids.length > skipped ? ids.slice(skipped) : ids.slice(0, most);
  }

  /** Hands the slot to the next call of its account. @returns false where none waits any more */
  grant(grant: RouteGrant): boolean {
    const next = this.#findNext(grant.accountId);
    if (next === undefined) return false;
    this.#waiters.serve(next).settle({ grant });
    return true;
  }

  /** Mostly the account's own; else a call that stands for several accounts. */
  #findNext(accountId: string): QueueEntry<Waiter> | undefined {
    const standsFor = ({ item }: QueueEntry<Waiter>): boolean => {
      for (const id of item.accountIds()) if (id === accountId) return true;
      return false;
    };
    const own = this.#waiters.headOf(accountId);
    if (own !== undefined && standsFor(own)) return own;
    for (const head of this.#waiters.heads()) if (standsFor(head)) return head;
    return undefined;
  }

  /**
   * Fails calls whose patience is shorter than the pause. Time spent waiting for slots does not count.
   * @param asked the accounts that the pause is for: keys and breakers may be open to others
   */
  pause(pause: GrantPause, asked: readonly string[]): void {
    const nowMs = performance.now();
    this.#pausedAtMs ??= nowMs;
    const pausedAtMs = this.#pausedAtMs;
    for (const accountId of asked) this.#pausedIds.add(accountId);
    const isPaused = ({ accountIds }: Waiter): boolean => {
      const ids = [...accountIds()];
      return ids.some((id) => asked.includes(id)) && ids.every((id) => this.#pausedIds.has(id));
    };
    const impatient = [...this.#waiters.entries()].filter(
      ({ item }) =>
        isPaused(item) && !isWorthWaiting(pause, item.patience, nowMs - Math.max(pausedAtMs, item.sinceMs)),
    );
    for (const { item } of impatient) item.settle({ grant: null });
  }

  unpause(): void {
    this.#pausedAtMs = null;
    this.#pausedIds.clear();
  }

  failAll(error: unknown): void {
    for (const { settle } of this.#waiters.drain()) settle({ error });
  }

  /** Resolves at the next `wake`. */
  async woken(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /** A slot may have come free. */
  wake(): void {
    this.#wake();
  }
}

/** @param waitedMs how long it has waited for pauses already */
export function isWorthWaiting(
  { keyMs, breakerMs }: GrantPause,
  patience: Patience,
  waitedMs: number,
): boolean {
  return (
    (keyMs !== null && waitedMs + keyMs <= patience.keyMs) ||
    (breakerMs !== null && waitedMs + breakerMs <= patience.breakerMs)
  );
}

/** Calls that may be made by the same ways wait in one line; those in the background in one of their own. */
export function nameLine(ways: readonly RouteWay[], isBackground: boolean): string {
  const name = nameWays(ways);
  return isBackground ? `${name}${backgroundMark}` : name;
}

/** The line of those that go first; null for a line that waits for no other. */
export function nameLineAhead(name: string): string | null {
  return name.endsWith(backgroundMark) ? name.slice(0, -backgroundMark.length) : null;
}

const backgroundMark = '\nbackground';

function nameWays(ways: readonly RouteWay[]): string {
  return ways
    .map(({ route, fingerprint }) => `${route.id} ${fingerprint}`)
    .sort()
    .join('\n');
}
