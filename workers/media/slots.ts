import { AppError } from '../../shared/contract/errors.ts';

/** A FIFO counting semaphore. */
export class Slots {
  #free: number;
  readonly #pending: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Waits for a slot and returns a function that releases it.
   * @throws AppError `deadline_exceeded` if none is free in time; the signal's reason when it is aborted
   */
  async acquire(signal: AbortSignal, deadlineAtMs: number): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal, deadlineAtMs);
    let isHeld = true;
    return () => {
      if (isHeld) this.#release();
      isHeld = false;
    };
  }

  async #wait(signal: AbortSignal, deadlineAtMs: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const cancel = (reason: Error): void => {
        stopWaiting();
        this.#pending.splice(this.#pending.indexOf(grant), 1);
        reject(reason);
      };
      const onAbort = (): void => cancel(signal.reason as Error);
      const timer = setTimeout(
        () => cancel(new AppError('deadline_exceeded')),
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
      this.#pending.push(grant);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #release(): void {
    const next = this.#pending.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
