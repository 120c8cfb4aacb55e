import { waitForTurn } from './service-queue.ts';

/** Calls for one model that wait before their responses until they are released, in order of arrival. */
export interface HeldCalls {
  /** How many calls are waiting now. */
  readonly waiting: number;
  /** Releases this many more calls: waiting ones first, then later ones. */
  release(count: number): void;
  /** Releases all calls, including later ones. */
  end(): void;
}

export interface CallHolder {
  hold(model: string): HeldCalls;
  /** Waits if calls for the model are held. Returns early if the caller disconnects. */
  waitIfHeld(model: string, signal: AbortSignal): Promise<void>;
}

/** Creates delays that a test controls. Fixed delays would have to be long enough for the slowest machine. */
export function createCallHolder(): CallHolder {
  const held = new Map<string, HeldModel>();
  return {
    hold(model) {
      const calls = new HeldModel(() => held.delete(model));
      held.set(model, calls);
      return calls;
    },
    waitIfHeld: async (model, signal) => held.get(model)?.waitIfHeld(signal),
  };
}

class HeldModel implements HeldCalls {
  readonly #waiting = new Set<() => void>();
  readonly #onEnd: () => void;
  /** How many calls may proceed without waiting. */
  #allowed = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  release(count: number): void {
    this.#allowed += count;
    for (const proceed of this.#waiting) {
      if (this.#allowed === 0) return;
      this.#allowed -= 1;
      this.#waiting.delete(proceed);
      proceed();
    }
  }

  end(): void {
    this.#onEnd();
    this.release(Infinity);
  }

  async waitIfHeld(signal: AbortSignal): Promise<void> {
    if (this.#allowed > 0) this.#allowed -= 1;
    else if (!signal.aborted) await waitForTurn(this.#waiting, signal);
  }
}
