// decision 0017
import type { CallSlot } from './acquire-script.ts';
import { isSameCandidate, type RouteCandidate } from '../../shared/routing/route-candidate.ts';

/** How long a free slot is kept for the next call of its account. */
const maxIdleMs = 25;
/** How long a slot is used before Redis is asked again, which may by then know of a failure or of other accounts. */
const maxUseMs = 250;
/** The limits of a target with fewer slots are exact at every moment. */
const minSlots = 32;

/** A slot that this process holds. */
export interface SlotUse {
  readonly slot: CallSlot;
  /** Whether the call that got the slot may leave it to another one. */
  readonly isKeepable: boolean;
  readonly grantedAtMs: number;
  /** Whether a call took it over from an earlier one. */
  isReused: boolean;
}

/**
 * Free slots that stay leased for a moment, so that the next call of the same account to the same target needs no
 * round trip to Redis, neither for its slot nor for its outcome.
 */
export class KeptSlots {
  readonly #release: (use: SlotUse) => void;
  readonly #kept = new Map<SlotUse, NodeJS.Timeout>();
  /** Slots granted before this are not kept. */
  #clearedAtMs = -Infinity;

  /** @param release called when a slot has not been taken in time */
  constructor(release: (use: SlotUse) => void) {
    this.#release = release;
  }

  /** Whether a slot whose call succeeded may be kept: most slots of its target were free when it was granted. */
  mayKeep({ slot, isKeepable, grantedAtMs }: SlotUse): boolean {
    return (
      isKeepable &&
      !slot.isProbe &&
      slot.slots >= minSlots &&
      slot.spareSlots * 2 >= slot.slots &&
      grantedAtMs > this.#clearedAtMs &&
      performance.now() - grantedAtMs < maxUseMs
    );
  }

  keep(use: SlotUse): void {
    const timer = setTimeout(() => {
      this.#kept.delete(use);
      this.#release(use);
    }, maxIdleMs);
    this.#kept.set(use, timer);
  }

  /** Takes a slot of this target, as the catalog describes it now, that the account left; null if there is none. */
  take(candidate: RouteCandidate, accountId: string): SlotUse | null {
    for (const [use, timer] of this.#kept) {
      const { slot } = use;
      if (slot.accountId !== accountId || slot.candidate.route !== candidate.route) continue;
      if (!isSameCandidate(slot.candidate, candidate)) continue;
      clearTimeout(timer);
      this.#kept.delete(use);
      use.isReused = true;
      return use;
    }
    return null;
  }

  /** Keeps none of the slots any longer, without releasing them. */
  forgetAll(): void {
    for (const timer of this.#kept.values()) clearTimeout(timer);
    this.#kept.clear();
  }

  /** Releases all slots now, and those in use after their calls. */
  releaseAll(): void {
    this.#clearedAtMs = performance.now();
    for (const [use, timer] of this.#kept) {
      clearTimeout(timer);
      this.#release(use);
    }
    this.#kept.clear();
  }
}
