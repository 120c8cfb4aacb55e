// decision 0042
import { FairQueue } from './fair-queue.ts';

/**
 * Path to a holder: an account alone, or a group that takes turns with the accounts, followed by names within the
 * group.
 */
type Holder = readonly [string, ...string[]];

/** Requests waiting for an event-loop turn. Within a group, requests take turns in the same way. */
class Turns {
  readonly #waiting = new FairQueue<() => void>();
  readonly #groups = new Map<string, Turns>();

  get size(): number {
    return this.#waiting.size;
  }

  countOf(name: string): number {
    return this.#waiting.countOf(name);
  }

  add([name, next, ...others]: Holder, resume: () => void): void {
    if (next === undefined) {
      this.#waiting.add(name, resume);
      return;
    }
    const group = this.#groups.get(name) ?? this.#addGroup(name);
    group.add([next, ...others], resume);
    this.#waiting.add(name, () => {
      group.serveNext();
      if (group.size === 0) this.#groups.delete(name);
    });
  }

  serveNext(): void {
    const next = this.#waiting.peek();
    if (next !== undefined) this.#waiting.serve(next)();
  }

  #addGroup(name: string): Turns {
    const group = new Turns();
    this.#groups.set(name, group);
    return group;
  }
}

/** Requests that have work left to do on the event loop. */
const turns = new Turns();

/** Free reads that have work left to do. They come after the others. */
const reads = new Turns();

/** If the others have taken all turns for this long, the next one goes to a read. */
const maxReadWaitMs = 200;

/** When the last turn of a read was, or when the first of the waiting ones began to wait. */
let readsWaitSinceMs = 0;

/**
 * After a turn, reads rest for this many times as long as that iteration of the loop took, so that they never use more
 * than a third of the process. Most requests that cost something wait for replies and not for turns, and would otherwise
 * find the process busy with a read at each of their steps.
 */
const restPerReadTurn = 2;
/** Without a rest after short turns, many single reads do not wait for timers. */
const shortTurnMs = 0.5;
const maxRestMs = 50;
let areReadsResting = false;
let isServing = false;

/** Groups for callers without a key. Their names cannot collide with account ids. */
const publicOperations = 'public operations';
const files = 'files';

/**
 * Waits until the account may continue with work that would block the event loop if it were done in one go. One request
 * continues in each iteration of the loop, and accounts take turns. Fifty large requests therefore delay the rest of
 * the process no longer than one does, and the requests of one account do not delay those of another.
 */
export function nextWorkTurn(accountId: string): Promise<void> {
  return nextTurn([accountId]);
}

/**
 * Waits for a turn of a caller without an account. All such callers form one group among the accounts, because anyone
 * can call from any number of networks. Networks take turns within the group, and operations take turns within a
 * network.
 */
export function nextTurnWithoutKey(network: string, operationId: string): Promise<void> {
  return nextTurn([publicOperations, network, operationId]);
}

/**
 * Waits for a turn to send more of a file that was requested by its link. Files form a separate group, in which
 * networks take turns: the number of such requests is limited, and a flood of calls without a key does not slow them
 * down.
 */
export function nextFileTurn(network: string): Promise<void> {
  return nextTurn([files, network]);
}

/**
 * Waits for a turn of a read that is free of charge, and so not limited by what it costs its caller. Such reads continue
 * only in iterations of the loop in which nothing else waits for a turn, but at least a few times per second.
 * @param requester the account or user that reads; they take turns
 */
export function nextReadTurn(requester: string): Promise<void> {
  if (reads.size === 0) readsWaitSinceMs = performance.now();
  return nextTurn([requester], reads);
}

/** How many requests of an account wait for an event-loop turn in this process, not counting reads. */
export function countWaitingForTurns(accountId: string): number {
  return turns.countOf(accountId);
}

async function nextTurn(holder: Holder, among = turns): Promise<void> {
  await new Promise<void>((resolve) => {
    among.add(holder, resolve);
    scheduleTurn();
  });
}

function scheduleTurn(): void {
  const isWaiting = turns.size > 0 || (reads.size > 0 && !areReadsResting);
  if (!isWaiting || isServing) return;
  isServing = true;
  setImmediate(serveTurn);
}

function serveTurn(): void {
  isServing = false;
  if (isTurnOfReads()) serveRead();
  else turns.serveNext();
  scheduleTurn();
}

/** Together, they take a few percent of the time. */
const readsPerSharedTurn = 8;

const isTurnOfReads = (): boolean =>
  reads.size > 0 &&
  !areReadsResting &&
  (turns.size === 0 || performance.now() - readsWaitSinceMs >= maxReadWaitMs);

function serveRead(): void {
  const startedMs = performance.now();
  readsWaitSinceMs = startedMs;
  areReadsResting = true;
  // While other work keeps the loop busy, several reads share the rare turn.
  for (let i = turns.size === 0 ? 1 : readsPerSharedTurn; i > 0; i -= 1) reads.serveNext();
  const endRest = (): void => {
    areReadsResting = false;
    scheduleTurn();
  };
  setImmediate(() => {
    const tookMs = performance.now() - startedMs;
    if (tookMs < shortTurnMs) endRest();
    else setTimeout(endRest, Math.min(maxRestMs, restPerReadTurn * tookMs));
  });
}

/** How long one turn may block the rest of the process. */
const turnMs = 4;
/** Shorter, because a request that costs something may wait behind it at each of its steps. */
const readTurnMs = 1;

/**
 * Yields all items, and waits for the account's next turn between items when needed. The consumer must handle each item
 * quickly.
 */
export async function* yieldInTurns<T>(items: Iterable<T>, accountId: string): AsyncGenerator<T> {
  let startedMs = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - startedMs < turnMs) continue;
    await nextWorkTurn(accountId);
    startedMs = performance.now();
  }
}

/** Passes all items to `take`, in turns of the account. `take` must be quick for each item. */
export async function processInTurns<T>(
  items: Iterable<T>,
  accountId: string,
  take: (item: T) => void,
): Promise<void> {
  await processItems(items, take, turnMs, () => nextWorkTurn(accountId));
}

/** Like `processInTurns`, in turns of a free read. */
export async function processInReadTurns<T>(
  items: Iterable<T>,
  requester: string,
  take: (item: T) => void,
): Promise<void> {
  await processItems(items, take, readTurnMs, () => nextReadTurn(requester));
}

async function processItems<T>(
  items: Iterable<T>,
  take: (item: T) => void,
  maxMs: number,
  waitForTurn: () => Promise<void>,
): Promise<void> {
  let startedMs = performance.now();
  for (const item of items) {
    take(item);
    if (performance.now() - startedMs < maxMs) continue;
    await waitForTurn();
    startedMs = performance.now();
  }
}
