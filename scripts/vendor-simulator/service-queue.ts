/** The limits of a real vendor: service time per call, and a maximum number of concurrent calls. */
export interface ServiceCost {
  /** Service time of every call. */
  readonly perCallMs?: number;
  /** Added for each input of an embedding call, or image of an image call. */
  readonly perInputMs?: number;
  /** Concurrent calls. Unlimited by default. */
  readonly maxConcurrency?: number;
  /** Whether calls over the limit wait in a queue (the default) or get a 429. */
  readonly overflow?: 'wait' | 'reject';
}

export interface ServiceQueue {
  /**
   * Waits in the queue and then for the service time. After `served`, the call holds its slot until `release`. `full`
   * means that the limit is reached and calls do not wait; `disconnected`, that the caller disconnected while waiting.
   */
  acquire(inputs: number, signal: AbortSignal): Promise<'served' | 'full' | 'disconnected'>;
  release(): void;
}

export function createServiceQueue({
  perCallMs = 0,
  perInputMs = 0,
  maxConcurrency = Infinity,
  overflow = 'wait',
}: ServiceCost): ServiceQueue {
  const waiting = new Set<() => void>();
  let inService = 0;

  return {
    async acquire(inputs, signal) {
      if (inService >= maxConcurrency) {
        if (overflow === 'reject') {
          return 'full';
        }
        if (!(await waitForTurn(waiting, signal))) {
          return 'disconnected';
        }
      } else {
        inService += 1;
      }
      const costMs = perCallMs + perInputMs * inputs;
      if (costMs > 0) {
        await pause(costMs, signal);
      }
      return 'served';
    },

    release() {
      const [next] = waiting;
      if (next === undefined) {
        inService -= 1;
        return;
      }
      // Pass the slot on directly, so that a new call cannot take it first.
      waiting.delete(next);
      next();
    },
  };
}

/**
 * Resolves with true when it is this call's turn, or with false if the caller disconnects first. To let a call proceed,
 * remove its entry from the set and call it.
 */
export function waitForTurn(waiting: Set<() => void>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const onTurn = (): void => {
      signal.removeEventListener('abort', onAbort);
      resolve(true);
    };
    const onAbort = (): void => {
      waiting.delete(onTurn);
      resolve(false);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    waiting.add(onTurn);
  });
}

/** Resolves after this time, or when the caller disconnects. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish, { once: true });
  });
}
