/**
 * Which attempts a delivery competes with, by what is known about its receiver: `prompt` if its last attempt ended
 * quickly, `hanging` if it timed out recently, otherwise `unknown`.
 */
export type DeliveryLane = 'prompt' | LimitedLane;

/** A lane with a limit of its own. Prompt receivers use whatever the other attempts leave. */
export type LimitedLane = 'unknown' | 'hanging';

export const limitedLanes: readonly LimitedLane[] = ['unknown', 'hanging'];

/** Concurrent attempts of a process. A waiting attempt costs little more than its socket. */
export interface LaneLimits {
  /** Places that no other attempts can take. */
  readonly prompt: number;
  readonly unknown: number;
  readonly hanging: number;
  /** For attempts to prompt and unknown receivers that take longer than `lateAfterMs`. */
  readonly late: number;
  /** An attempt that takes longer leaves its place to another one. */
  readonly lateAfterMs: number;
}

export const defaultLaneLimits: LaneLimits = {
  prompt: 64,
  unknown: 32,
  hanging: 32,
  late: 64,
  lateAfterMs: 1_000,
};

/** Concurrent attempts per process, account and lane. */
const maxPerAccount: Readonly<Record<DeliveryLane, number>> = { prompt: 2, unknown: 2, hanging: 1 };

export interface AttemptPlace {
  /** Aborted when another late attempt needs the place of this one. */
  readonly signal: AbortSignal;
  /** Call when the request to the receiver begins. */
  startClock(): void;
  /** Call exactly once, when the attempt has ended. */
  end(): void;
}

interface Holder {
  readonly accountId: string;
  readonly lane: DeliveryLane;
  readonly abort: AbortController;
  timer: NodeJS.Timeout | null;
  holds: 'place' | 'late' | 'nothing';
}

/**
 * The places for attempts in this process. Receivers that hang can never take the places of prompt ones: attempts that
 * take long are moved out of the way, and the longest of them is ended when there are too many.
 */
export class DeliveryLanes {
  readonly #limits: LaneLimits;
  readonly #used: Record<DeliveryLane, number> = { prompt: 0, unknown: 0, hanging: 0 };
  readonly #byAccount: Readonly<Record<DeliveryLane, Map<string, number>>> = {
    prompt: new Map(),
    unknown: new Map(),
    hanging: new Map(),
  };
  /** In the order in which they became late, which is that in which they began. */
  readonly #late = new Set<Holder>();
  /** Called when an attempt to an unknown receiver has become late, so that another one can begin. */
  onPlaceFreed: (lane: LimitedLane) => void = () => undefined;

  constructor(limits: LaneLimits = defaultLaneLimits) {
    this.#limits = limits;
  }

  /** Maximum number of concurrent attempts of the process. */
  get size(): number {
    const { prompt, unknown, hanging, late } = this.#limits;
    return prompt + unknown + hanging + late;
  }

  /** After this time, an attempt is not prompt. */
  get lateAfterMs(): number {
    return this.#limits.lateAfterMs;
  }

  /** How many more attempts of this lane can begin. */
  countFree(lane: LimitedLane): number {
    return this.#limits[lane] - this.#used[lane];
  }

  /** Whether the account is below its own limit in this lane. */
  isBelowAccountLimit(accountId: string, lane: DeliveryLane): boolean {
    return (this.#byAccount[lane].get(accountId) ?? 0) < maxPerAccount[lane];
  }

  canBegin(accountId: string, lane: DeliveryLane): boolean {
    return this.isBelowAccountLimit(accountId, lane) && (lane === 'prompt' || this.countFree(lane) > 0);
  }

  /**
   * The accounts at their limit in this lane, or among prompt receivers: a delivery that waits in this lane may be to a
   * receiver that has become prompt.
   */
  listBusyAccounts(lane: LimitedLane): string[] {
    return [lane, 'prompt' as const].flatMap((each) =>
      [...this.#byAccount[each].keys()].filter((id) => !this.isBelowAccountLimit(id, each)),
    );
  }

  /** @returns null if the lane is full or the account is at its limit */
  tryBegin(accountId: string, lane: DeliveryLane): AttemptPlace | null {
    if (!this.canBegin(accountId, lane)) return null;
    const ofLane = this.#byAccount[lane];
    ofLane.set(accountId, (ofLane.get(accountId) ?? 0) + 1);
    this.#used[lane] += 1;
    const holder: Holder = { accountId, lane, abort: new AbortController(), timer: null, holds: 'place' };
    return {
      signal: holder.abort.signal,
      startClock: () => {
        // Attempts to hanging receivers keep their places, which are theirs only.
        if (lane !== 'hanging')
          holder.timer = setTimeout(() => this.#makeLate(holder), this.#limits.lateAfterMs);
      },
      end: () => this.#end(holder),
    };
  }

  #makeLate(holder: Holder): void {
    this.#leave(holder);
    const [longest] = this.#late;
    if (longest !== undefined && this.#late.size >= this.#limits.late) {
      this.#leave(longest);
      longest.abort.abort();
    }
    this.#late.add(holder);
    holder.holds = 'late';
    if (holder.lane === 'unknown') this.onPlaceFreed(holder.lane);
  }

  #end(holder: Holder): void {
    if (holder.timer !== null) clearTimeout(holder.timer);
    this.#leave(holder);
    const { accountId, lane } = holder;
    const ofLane = this.#byAccount[lane];
    const remaining = ofLane.get(accountId)! - 1;
    if (remaining === 0) ofLane.delete(accountId);
    else ofLane.set(accountId, remaining);
  }

  #leave(holder: Holder): void {
    if (holder.holds === 'place') this.#used[holder.lane] -= 1;
    this.#late.delete(holder);
    holder.holds = 'nothing';
  }
}
