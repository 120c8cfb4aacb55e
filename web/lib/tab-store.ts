import { createStore, type Store } from './store.ts';

/** How long changes wait, so that a stream is not written with each of its pieces. */
const writeDelayMs = 400;

interface TabStoreOptions<Value> {
  /** Changes with each new shape of the value: what an older release kept is then forgotten. */
  readonly name: string;
  /** Whose it is. What this tab keeps of others is deleted. */
  readonly owner: string;
  readonly initial: Value;
  /** A smaller value, for when the whole does not fit into what a browser gives a tab (about 5 MB). */
  readonly shrink: (value: Value) => Value;
  /** What to make of a value after a reload, which ended everything that was under way. */
  readonly revive?: (kept: Value) => Value;
}

interface TabStore<Value> {
  readonly key: string;
  readonly store: Store<Value>;
  /** Goes back to the initial value, and deletes what is kept. */
  readonly forget: () => void;
}

const prefix = 'mg.';
const stores = new Map<string, TabStore<unknown>>();

/**
 * Returns a store that a reload and a new sign-in of the same user in this tab do not lose. Nothing of it leaves the tab.
 */
export function openTabStore<Value>(options: TabStoreOptions<Value>): Store<Value> {
  const { name, owner } = options;
  const key = `${prefix}${name}.${owner}`;
  const opened = stores.get(name);
  if (opened?.key === key) return opened.store as Store<Value>;
  opened?.forget();
  const created = createTabStore(key, options);
  stores.set(name, created);
  return created.store;
}

/** Deletes what this tab keeps. @param owner a user whose stores stay; null for none */
export function forgetTabStores(owner: string | null): void {
  const stays = (key: string): boolean => owner !== null && key.endsWith(`.${owner}`);
  for (const { key, forget } of stores.values()) if (!stays(key)) forget();
  try {
    for (const key of Object.keys(sessionStorage))
      if (key.startsWith(prefix) && !stays(key)) sessionStorage.removeItem(key);
  } catch {
    // Storage is switched off.
  }
}

function createTabStore<Value>(key: string, options: TabStoreOptions<Value>): TabStore<Value> {
  const { name, initial, shrink, revive = (kept) => kept } = options;
  const kept = read(name, key) as Value | null;
  const store = createStore<Value>(kept === null ? initial : revive(kept));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const value = store.get();
    if (!tryWrite(key, value) && !tryWrite(key, shrink(value))) tryRemove(key);
  };
  store.listen(() => {
    timer ??= setTimeout(write, writeDelayMs);
  });
  addEventListener('pagehide', () => {
    if (timer !== undefined) write();
  });
  const forget = (): void => {
    store.set(initial);
    clearTimeout(timer);
    timer = undefined;
    tryRemove(key);
  };
  return { key, store, forget };
}

function read(name: string, key: string): unknown {
  try {
    for (const other of Object.keys(sessionStorage))
      if (other.startsWith(`${prefix}${name}.`) && other !== key) sessionStorage.removeItem(other);
    const text = sessionStorage.getItem(key);
    return text === null ? null : JSON.parse(text);
  } catch {
    // Storage is switched off.
    return null;
  }
}

function tryWrite(key: string, value: unknown): boolean {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    // Storage is switched off or full.
    return false;
  }
}

function tryRemove(key: string): void {
  try {
    sessionStorage.removeItem(key);
  } catch {
    // Storage is switched off.
  }
}
