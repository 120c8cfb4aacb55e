import { askToLeave, isGuarded } from './leave-guard.ts';
import { createStore, useStore } from './store.ts';

interface Options {
  readonly replace?: boolean;
  readonly state?: object | null;
}

/** What an entry of the history has, unless a link within the page has just made it. */
type EntryState = { readonly place?: number } | null;

const readPlace = (state: unknown): number | null => (state as EntryState)?.place ?? null;

/**
 * Where the visitor is, as the router sees it. Browsers go "back" first and tell afterwards. If something would be lost,
 * this goes to where the visitor was, asks, and goes back again if that is the answer; the pages see nothing of it. Nobody
 * is trapped: what a guard does not prevent happens, and whoever goes on meanwhile has left. Needs no more of a browser
 * than its history, so it is the same in all of them.
 */
export class SiteLocation {
  readonly #path = createStore(location.pathname);
  readonly #search = createStore(location.search);
  #href = location.href;
  /** Numbers the entries of the browser's history, so that two of them tell how far they are apart. */
  #place = readPlace(history.state) ?? 0;
  /** What to ask once the browser is back where the visitor was; null if it is not on its way there. */
  #askThen: (() => void) | null = null;
  /** Whether the visitor has agreed to the next step through the history. */
  #isAgreed = false;

  constructor() {
    this.#markEntry();
    addEventListener('popstate', (event) => this.#onStep(event.state));
  }

  /** For the router. */
  readonly usePath = (): [string, SiteLocation['navigate']] => [useStore(this.#path), this.navigate];

  /** For the router. */
  readonly useSearch = (): string => useStore(this.#search);

  readonly navigate = (to: string, { replace = false, state = null }: Options = {}): void => {
    const place = this.#place + (replace ? 0 : 1);
    history[replace ? 'replaceState' : 'pushState']({ ...state, place }, '', to);
    this.#settle(place);
  };

  #onStep(state: unknown): void {
    const place = readPlace(state);
    if (place === null) {
      // A link within the page made this entry, or replaced the one with the same address.
      this.#settle(this.#place + (location.href === this.#href ? 0 : 1));
      this.#markEntry();
      return;
    }
    const askThen = this.#askThen;
    const distance = place - this.#place;
    if (askThen === null && distance !== 0 && !this.#isAgreed && isGuarded()) {
      this.#askThen = () =>
        askToLeave(() => {
          this.#isAgreed = true;
          history.go(distance);
        });
      history.go(-distance);
      return;
    }
    this.#askThen = null;
    this.#isAgreed = false;
    this.#settle(place);
    if (distance === 0) askThen?.();
  }

  /** Entries keep their state when a page is loaded again. */
  #markEntry(): void {
    const state = history.state as EntryState;
    if (readPlace(state) === null) history.replaceState({ ...state, place: this.#place }, '');
  }

  #settle(place: number): void {
    this.#place = place;
    this.#href = location.href;
    this.#path.set(location.pathname);
    this.#search.set(location.search);
  }
}
