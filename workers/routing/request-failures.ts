// decision 0073
import type { CallSlot } from './acquire-script.ts';
import type { UpstreamError } from '../upstreams/upstream.ts';
import { findCooldown, isServerError } from './retry-policy.ts';
import type { RouteLimiter } from './route-limiter.ts';

/** A route's first failure, which does not count yet. */
interface HeldFailure {
  readonly slot: CallSlot;
  readonly accountIds: readonly string[];
  readonly words: string;
  readonly atMs: number;
  /** Whether a later call failed, and the server said the same. */
  isRepeated: boolean;
}

/**
 * The server failures of one request. A route's circuit breaker counts at most one of them, however often the request
 * was retried: many servers respond to a bad request with a 500, and its retries would look like an outage. None counts
 * if the server repeated the words of its 500 while it served other calls. A 500 therefore counts only once the request
 * has ended or another route is called; other failures count immediately.
 */
export class RequestFailures {
  readonly #limiter: Pick<RouteLimiter, 'release' | 'reportFailure'>;
  readonly #isSearched: boolean;
  /** By route id. Null once a failure counted. */
  readonly #held = new Map<string, HeldFailure | null>();

  /**
   * @param isSearched whether the caller splits the request after any 5xx, and then decides whether it counts
   */
  constructor(limiter: Pick<RouteLimiter, 'release' | 'reportFailure'>, { isSearched = false } = {}) {
    this.#limiter = limiter;
    this.#isSearched = isSearched;
  }

  /** Releases the slot of a call that its server failed. */
  add(slot: CallSlot, error: UpstreamError, accountIds: readonly string[]): void {
    const { id } = slot.candidate.route;
    const held = this.#held.get(id);
    const mayBeTheRequest = error.status === 500 || (this.#isSearched && isServerError(error));
    // Only the outcome of a probe tells whether other calls may follow.
    if (slot.isProbe || (held === undefined && !mayBeTheRequest)) {
      this.#held.set(id, null);
      this.#limiter.release(slot, 'bad', findCooldown(error), accountIds);
      return;
    }
    this.#limiter.release(slot, 'none');
    const words = findWords(error);
    if (held === undefined) {
      this.#held.set(id, { slot, accountIds, words, atMs: performance.now(), isRepeated: false });
    } else if (held !== null) {
      held.isRepeated ||= error.status === 500 && words === held.words;
    }
  }

  /** Counts the failures that do not count yet: those of all routes, or of all but one. */
  count(exceptRouteId: string | null = null): void {
    for (const [id, held] of this.#held) {
      if (held === null || id === exceptRouteId) continue;
      const { slot, accountIds, isRepeated, atMs } = held;
      this.#held.set(id, null);
      this.#limiter.reportFailure(slot, accountIds, isRepeated ? performance.now() - atMs : null);
    }
  }

  /** Counts none of the failures that do not count yet: the request was at fault. */
  forget(): void {
    for (const id of this.#held.keys()) this.#held.set(id, null);
  }
}

/** What the server said, without numbers, such as ids and times. */
const findWords = ({ message }: UpstreamError): string => message.replace(/\d+/g, '0');
