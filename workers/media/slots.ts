import { AppError } from '../../shared/contract/errors.ts';

/** A FIFO counting semaphore. */
export class Slots {
  #free: number;
  readonly #waiters: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Waits for a slot and returns a function that releases it. Rejects with the signal's reason.
   * @throws AppError `deadline_exceeded`
   */
  async acquire(signal: AbortSignal, deadlineAtMs: number): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal, deadlineAtMs);
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  async #wait(signal: AbortSignal, deadlineAtMs: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const leave = (reason: Error): void => {
        stopWaiting();
        this.#waiters.splice(this.#waiters.indexOf(grant), 1);
        reject(reason);
      };
      const onAbort = (): void => leave(signal.reason as Error);
      const timer = setTimeout(
        () => leave(new AppError('deadline_exceeded')),
        Math.max(0, deadlineAtMs - Date.now()),
      );
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      const grant = (): void => {
        stopWaiting();
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
