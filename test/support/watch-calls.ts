/** Hooks around the numbered calls (from 1) of a process's stores. Either hook may wait or throw. */
export interface CallHooks {
  readonly before?: (call: number) => Promise<void> | void;
  readonly after?: (call: number) => Promise<void> | void;
}

/** Makes copies of stores that share one call counter. */
export function watchCalls({ before, after }: CallHooks): <T extends object>(store: T) => T {
  let calls = 0;
  return (store) =>
    new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        const call = value.bind(target) as (...args: unknown[]) => unknown;
        return async (...args: unknown[]) => {
          calls += 1;
          const number = calls;
          await before?.(number);
          const result = await call(...args);
          await after?.(number);
          return result;
        };
      },
    });
}
