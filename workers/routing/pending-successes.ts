// decision 0017
import type { CallSlot } from './acquire-script.ts';

/** How long a success may wait to be reported. */
const flushMs = 250;

interface Pending {
  /** A slot of the target and the account. */
  readonly slot: CallSlot;
  calls: number;
}

const keyOf = ({ candidate, accountId }: CallSlot): string =>
  `${candidate.route.id} ${candidate.fingerprint} ${accountId}`;

/** Successful calls that left their slot to the next call. They are reported together, shortly after they ended. */
export class PendingSuccesses {
  readonly #report: (slot: CallSlot, calls: number) => void;
  readonly #pending = new Map<string, Pending>();
  #timer: NodeJS.Timeout | null = null;

  /** @param report called with a slot of the target and the account, and how many of its calls succeeded */
  constructor(report: (slot: CallSlot, calls: number) => void) {
    this.#report = report;
  }

  add(slot: CallSlot): void {
    const key = keyOf(slot);
    const known = this.#pending.get(key);
    if (known === undefined) this.#pending.set(key, { slot, calls: 1 });
    else known.calls += 1;
    this.#timer ??= setTimeout(() => this.flush(), flushMs);
  }

  /** Removes the successes of the slot's target and account, which its own report will include. @returns how many */
  take(slot: CallSlot): number {
    const key = keyOf(slot);
    const calls = this.#pending.get(key)?.calls ?? 0;
    this.#pending.delete(key);
    return calls;
  }

  /** Reports nothing of what is pending. */
  forgetAll(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#pending.clear();
  }

  /** Reports everything now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const { slot, calls } of this.#pending.values()) this.#report(slot, calls);
    this.#pending.clear();
  }
}
