import { FairQueue } from './fair-queue.ts';

/** Requests that have work left to do on the event loop. */
const waiting = new FairQueue<() => void>();

/**
 * Waits until the account may go on with work that would hold up the event loop if it were done in one go. One request
 * goes on in each iteration of the loop, and accounts take turns: fifty large requests delay whatever else the process
 * does no longer than one, and those of one account do not delay another's.
 */
export async function nextWorkTurn(accountId: string): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.add(accountId, resolve);
    if (waiting.size === 1) setImmediate(giveTurn);
  });
}

/** How many requests of an account wait for a turn in this process. */
export function countWaitingForTurns(accountId: string): number {
  return waiting.countOf(accountId);
}

function giveTurn(): void {
  const next = waiting.peek();
  if (next !== undefined) waiting.serve(next)();
  if (waiting.size > 0) setImmediate(giveTurn);
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
