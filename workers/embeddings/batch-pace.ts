/** How many inputs a call takes and how many calls run at a time until the first ones have ended. */
const start = { inputs: 128, calls: 8 };
/** A call that takes less may be larger, and there may be more calls at a time. */
const quickMs = 2_500;
/** A call that takes longer is too large, or there are too many. */
const slowMs = 6_000;
const minInputs = 16;
const callBounds = { min: 2, max: 64 };

/**
 * How large calls for the batch lines of a model are, and how many of them this worker makes at a time, so that each takes
 * a few seconds. Vendors' limits alone would have a slow server work on tens of thousands of lines at once: a cancelled
 * batch would still run and pay for all of them, and calls would exceed their timeouts.
 *
 * Both grow while calls are quick: the calls of a vendor that takes two seconds for 2048 inputs are full after four rounds.
 */
export class BatchPace {
  #inputs = start.inputs;
  #calls: number = start.calls;

  /** The most inputs of a call. */
  get inputs(): number {
    return this.#inputs;
  }

  /** The most calls at a time. */
  get calls(): number {
    return this.#calls;
  }

  /**
   * @param inputs of a call that succeeded
   * @param ms how long it took
   * @param maxInputs the vendor's limit
   */
  noteCall(inputs: number, ms: number, maxInputs: number): void {
    if (ms > slowMs) {
      this.noteSlowCall(inputs);
      return;
    }
    if (ms > quickMs) return;
    this.#calls = Math.min(callBounds.max, this.#calls + 1);
    // Calls of the same size that end together count once.
    if (inputs >= this.#inputs) this.#inputs = Math.min(maxInputs, 2 * this.#inputs);
  }

  /** Notes a call that took too long, or timed out. */
  noteSlowCall(inputs: number): void {
    this.#inputs = Math.max(minInputs, Math.floor(Math.min(inputs, this.#inputs) / 2));
    this.#calls = Math.max(callBounds.min, Math.floor(this.#calls / 2));
  }
}
