/** A counting lock whose waiters are served in the order they came. */
export class Slots {
  #free: number;
  readonly #waiters: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot and returns what gives it back. Rejects with the signal's reason. */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  async #wait(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(grant), 1);
        reject(signal.reason as Error);
      };
      const grant = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      this.#waiters.push(grant);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #release(): void {
    const next = this.#waiters.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
