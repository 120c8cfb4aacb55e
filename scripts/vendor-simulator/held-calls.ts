import { waitInLine } from './service-line.ts';

/** Calls for one model, each of which waits before its answer until it is let go, in the order they came. */
export interface HeldCalls {
  /** How many wait now. */
  readonly waiting: number;
  /** Lets so many more calls go: those that wait, then those that come. */
  letGo(count: number): void;
  /** Lets all go, those that come as well. */
  end(): void;
}

export interface CallHolder {
  hold(model: string): HeldCalls;
  /** Waits where calls for the model are held; returns early when the caller goes. */
  pass(model: string, signal: AbortSignal): Promise<void>;
}

/** Time in an answer that a test decides about, where a fixed delay would have to be longer than any machine is slow. */
export function createCallHolder(): CallHolder {
  const held = new Map<string, HeldModel>();
  return {
    hold(model) {
      const calls = new HeldModel(() => held.delete(model));
      held.set(model, calls);
      return calls;
    },
    pass: async (model, signal) => held.get(model)?.pass(signal),
  };
}

class HeldModel implements HeldCalls {
  readonly #waiting = new Set<() => void>();
  readonly #onEnd: () => void;
  /** How many may go without waiting. */
  #allowed = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  letGo(count: number): void {
    this.#allowed += count;
    for (const go of this.#waiting) {
      if (this.#allowed === 0) return;
      this.#allowed -= 1;
      this.#waiting.delete(go);
      go();
    }
  }

  end(): void {
    this.#onEnd();
    this.letGo(Infinity);
  }

  async pass(signal: AbortSignal): Promise<void> {
    if (this.#allowed > 0) this.#allowed -= 1;
    else if (!signal.aborted) await waitInLine(this.#waiting, signal);
  }
}
