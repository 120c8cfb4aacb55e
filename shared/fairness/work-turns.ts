import { FairQueue } from './fair-queue.ts';

/** Requests that have work left to do on the event loop. */
const waiting = new FairQueue<() => void>();

/** Of these, the ones without a key. Accounts have other names. */
const waitingWithoutKey = new FairQueue<() => void>();
const placeWithoutKey = 'callers without a key';

/**
 * Waits until the account may go on with work that would hold up the event loop if it were done in one go. One request
 * goes on in each iteration of the loop, and accounts take turns: fifty large requests delay whatever else the process
 * does no longer than one, and those of one account do not delay another's.
 */
export async function nextWorkTurn(accountId: string): Promise<void> {
  await new Promise<void>((resolve) => addTurn(accountId, resolve));
}

/**
 * Waits for a turn of a caller who has no account. All of them have one place among the accounts, as anybody can come
 * from any number of networks; within it they take turns.
 * @param caller names the network, and whatever else shares fairly within it
 */
export async function nextTurnWithoutKey(caller: string): Promise<void> {
  await new Promise<void>((resolve) => {
    waitingWithoutKey.add(caller, resolve);
    addTurn(placeWithoutKey, () => serveNext(waitingWithoutKey));
  });
}

function addTurn(holder: string, goOn: () => void): void {
  waiting.add(holder, goOn);
  if (waiting.size === 1) setImmediate(giveTurn);
}

/** How many requests of an account wait for a turn in this process. */
export function countWaitingForTurns(accountId: string): number {
  return waiting.countOf(accountId);
}

function giveTurn(): void {
  serveNext(waiting);
  if (waiting.size > 0) setImmediate(giveTurn);
}

function serveNext(queue: FairQueue<() => void>): void {
  const next = queue.peek();
  if (next !== undefined) queue.serve(next)();
}

/** Other work of the process waits for no longer than this. */
const turnMs = 4;

/** All items, for who takes each of them quickly; between two of them the account's turn is waited for. */
export async function* giveInTurns<T>(items: Iterable<T>, accountId: string): AsyncGenerator<T> {
  let startedMs = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - startedMs < turnMs) continue;
    await nextWorkTurn(accountId);
    startedMs = performance.now();
  }
}

/** Takes all items, in turns; `take` must be quick for each of them. */
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
