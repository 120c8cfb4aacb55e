import { useLayoutEffect, useState } from 'preact/hooks';

/** A value outside of components. Components that use it are rendered again when it changes. */
export interface Store<Value> {
  get(): Value;
  set(value: Value): void;
  listen(listener: () => void): () => void;
}

export function createStore<Value>(initial: Value): Store<Value> {
  let current = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => current,
    set(value) {
      if (Object.is(value, current)) return;
      current = value;
      for (const listener of Array.from(listeners)) listener();
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<Value>(store: Store<Value>): Value {
  const [value, setValue] = useState(() => store.get());
  useLayoutEffect(() => {
    const update = (): void => setValue(() => store.get());
    update();
    return store.listen(update);
  }, [store]);
  return value;
}
