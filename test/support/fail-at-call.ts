/** What a process that was killed leaves undone. */
export class Killed extends Error {}

export interface CallCounter {
  calls: number;
  /** From this call on every call fails: the process is gone. */
  readonly killedAt: number;
  /** Whether the call at which it dies is still carried out, and only its answer lost. */
  readonly isCarriedOut: boolean;
}

/**
 * A store whose process dies at one of its calls: it and all that follow throw. Several stores that share a counter
 * die together.
 */
export function failAtCall<T extends object>(store: T, counter: CallCounter): T {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const call = value.bind(target) as (...args: unknown[]) => unknown;
      return async (...args: unknown[]) => {
        counter.calls += 1;
        if (counter.calls > counter.killedAt) throw new Killed();
        if (counter.calls < counter.killedAt) return await call(...args);
        if (counter.isCarriedOut) await call(...args);
        throw new Killed();
      };
    },
  });
}
