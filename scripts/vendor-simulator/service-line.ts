/** What a call costs a real vendor: time in service, and a bound on calls in service at once. */
export interface ServiceCost {
  /** Time in service of every call. */
  readonly perCallMs?: number;
  /** Added for each input of an embedding call, or image of an image call. */
  readonly perInputMs?: number;
  /** Calls in service at once; unbounded unless set. */
  readonly maxConcurrency?: number;
  /** Whether calls past that bound wait in line (the default) or are answered 429. */
  readonly overflow?: 'wait' | 'reject';
}

export interface ServiceLine {
  /**
   * Waits in line and then for the time in service. After `served` the slot is the call's until `leave`; `full` is
   * a line that does not wait, `gone` a caller that left while still in it.
   */
  enter(inputs: number, signal: AbortSignal): Promise<'served' | 'full' | 'gone'>;
  leave(): void;
}

export function createServiceLine({
  perCallMs = 0,
  perInputMs = 0,
  maxConcurrency = Infinity,
  overflow = 'wait',
}: ServiceCost): ServiceLine {
  const waiting = new Set<() => void>();
  let inService = 0;

  return {
    async enter(inputs, signal) {
      if (inService >= maxConcurrency) {
        if (overflow === 'reject') {
          return 'full';
        }
        if (!(await waitInLine(waiting, signal))) {
          return 'gone';
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

    leave() {
      const [next] = waiting;
      if (next === undefined) {
        inService -= 1;
        return;
      }
      // The slot passes on, so that a newcomer cannot take it first.
      waiting.delete(next);
      next();
    },
  };
}

/** Whether the turn came; else the caller went first. Who is next is called and taken out of the line. */
export function waitInLine(waiting: Set<() => void>, signal: AbortSignal): Promise<boolean> {
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

/** Resolves after that time, or when the caller goes. */
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
