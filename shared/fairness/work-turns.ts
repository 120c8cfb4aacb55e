import { FairQueue } from './fair-queue.ts';

/**
 * Path of names that take turns: an account alone, or a shared place among the accounts and then the names within it.
 */
type Holder = readonly [string, ...string[]];

/** Requests waiting for a turn. Requests that share a place take turns within it in the same way. */
class Turns {
  readonly #waiting = new FairQueue<() => void>();
  readonly #places = new Map<string, Turns>();

  get size(): number {
    return this.#waiting.size;
  }

  countOf(name: string): number {
    return this.#waiting.countOf(name);
  }

  add([name, next, ...further]: Holder, goOn: () => void): void {
    if (next === undefined) {
      this.#waiting.add(name, goOn);
      return;
    }
    const place = this.#places.get(name) ?? this.#open(name);
    place.add([next, ...further], goOn);
    this.#waiting.add(name, () => {
      place.serveNext();
      if (place.size === 0) this.#places.delete(name);
    });
  }

  serveNext(): void {
    const next = this.#waiting.peek();
    if (next !== undefined) this.#waiting.serve(next)();
  }

  #open(name: string): Turns {
    const place = new Turns();
    this.#places.set(name, place);
    return place;
  }
}

/** Requests that have work left to do on the event loop. */
const turns = new Turns();

/** Places of callers without a key. They cannot collide with account ids. */
const publicOperations = 'public operations';
const files = 'files';

/**
 * Waits until the account may continue with work that would block the event loop if it were done in one go. One request
 * continues in each iteration of the loop, and accounts take turns. Fifty large requests therefore delay the rest of
 * the process no longer than one does, and those of one account do not delay another's.
 */
export function nextWorkTurn(accountId: string): Promise<void> {
  return nextTurn([accountId]);
}

/**
 * Waits for a turn of a caller without an account. All of them share one place among the accounts, because anyone can
 * call from any number of networks. Within it networks take turns, and operations take turns within a network.
 */
export function nextTurnWithoutKey(network: string, operationId: string): Promise<void> {
  return nextTurn([publicOperations, network, operationId]);
}

/**
 * Waits for a turn to send more of a file that was requested by its link. Files have their own place, in which networks
 * take turns: their number is bounded, and a flood of calls without a key does not slow them down.
 */
export function nextFileTurn(network: string): Promise<void> {
  return nextTurn([files, network]);
}

/** How many requests of an account wait for a turn in this process. */
export function countWaitingForTurns(accountId: string): number {
  return turns.countOf(accountId);
}

async function nextTurn(holder: Holder): Promise<void> {
  await new Promise<void>((resolve) => {
    turns.add(holder, resolve);
    if (turns.size === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  turns.serveNext();
  if (turns.size > 0) setImmediate(giveTurn);
}

/** How long one turn may take, and so how long the rest of the process waits for it. */
const turnMs = 4;

/**
 * Yields all items and waits for the account's turn between two of them when needed. The consumer must handle each
 * quickly.
 */
export async function* giveInTurns<T>(items: Iterable<T>, accountId: string): AsyncGenerator<T> {
  let startedMs = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - startedMs < turnMs) continue;
    await nextWorkTurn(accountId);
    startedMs = performance.now();
  }
}

/** Takes all items, in turns. `take` must be quick for each of them. */
export async function takeInTurns<T>(
  items: Iterable<T>,
  accountId: string,
  take: (item: T) => void,
): Promise<void> {
  let startedMs = performance.now();
  for (const item of items) {
    take(item);
    if (performance.now() - startedMs < turnMs) continue;
    await nextWorkTurn(accountId);
    startedMs = performance.now();
  }
}
