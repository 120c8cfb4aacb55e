import { toAppError, type AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { FairQueue, type QueueEntry } from '../../shared/fairness/fair-queue.ts';
import { pieceBytes } from '../../shared/reply/frame.ts';
import { BufferPool, type LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';

/**
 * Redis cuts a subscriber for which 32 MB wait, or 8 MB for a minute. However many workers have results for this
 * process, and however slow it is, no more than this is on its way to it.
 */
const maxAskedBytes = 6 * 1024 * 1024;
/** A result that was asked for and does not come so long makes room for others; its worker may be dead. */
const patienceMs = 2_000;

/** What one account is sent before it is another's turn. */
const turnBytes = 4 * pieceBytes;

/** Where answers are put together, until they are written to their callers. */
const buffers = new BufferPool(64 * 1024 * 1024);

/**
 * Waits for the memory that a result may take. Null where it needs none.
 * @throws AppError where there is none in time; the signal's reason
 */
export type AcquireMemory = (signal: AbortSignal) => Promise<BudgetShare | null>;

/** What results are to this process beyond their bytes. */
export interface ResultRequests {
  /** Has the result of a request sent up to a byte. */
  ask(requestId: string, upToByte: number): void;
  /** There is no memory for the result; it has been dropped. */
  refuse(requestId: string, error: AppError): void;
}

interface IncomingResult {
  readonly requestId: string;
  readonly accountId: string;
  readonly length: number;
  /** Aborted when the result is dropped, for which memory may be waited for. */
  readonly dropped: AbortController;
  share: BudgetShare | null;
  /** Null until the first piece has come. */
  buffer: LentBuffer | null;
  received: number;
  /** What is up to here is on its way; where that is nothing, it waits for memory or for its turn. */
  askedTo: number;
  /** Null before it has its memory, and once all of it has been asked for. */
  entry: QueueEntry<IncomingResult> | null;
  waitsSinceMs: number;
  /** Moved on by the time that it waited here: its worker is not to blame for that. */
  lastSeenAtMs: number;
}

/** Large results on their way from the workers to this process, which come in pieces as it asks for them. */
export class IncomingResults {
  readonly #requests: ResultRequests;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #results = new Map<string, IncomingResult>();
  /** Those of which a part has not been asked for. */
  readonly #queue = new FairQueue<IncomingResult>();
  #askedBytes = 0;

  constructor(requests: ResultRequests, log: Logger, nowMs = () => performance.now()) {
    this.#requests = requests;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** @param acquire absent where memory was acquired before the request was made */
  add(requestId: string, accountId: string, length: number, acquire?: AcquireMemory): void {
    this.drop(requestId);
    const nowMs = this.#nowMs();
    const result: IncomingResult = {
      requestId,
      accountId,
      length,
      dropped: new AbortController(),
      share: null,
      buffer: null,
      received: 0,
      askedTo: 0,
      entry: null,
      waitsSinceMs: nowMs,
      lastSeenAtMs: nowMs,
    };
    this.#results.set(requestId, result);
    if (acquire === undefined) this.#begin(result);
    else runInBackground(this.#beginWithMemory(result, acquire), 'taking a large result', this.#log);
  }

  async #beginWithMemory(result: IncomingResult, acquire: AcquireMemory): Promise<void> {
    const { signal } = result.dropped;
    try {
      result.share = await acquire(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.drop(result.requestId);
      this.#requests.refuse(result.requestId, toAppError(error));
      return;
    }
    // It may have been dropped in the moment in which the memory was granted.
    if (signal.aborted) result.share?.release();
    else this.#begin(result);
  }

  #begin(result: IncomingResult): void {
    this.#enqueue(result);
    this.#askOn();
  }

  /** @returns the result, when this was its last piece */
  take(requestId: string, piece: Buffer): LentBuffer | null {
    const result = this.#results.get(requestId);
    if (result === undefined) return null;
    // One that was taken for lost comes without being on its way.
    this.#askedBytes -= Math.min(piece.length, result.askedTo - result.received);
    const buffer = (result.buffer ??= buffers.lend(result.length));
    result.received += piece.copy(buffer.bytes, result.received);
    result.lastSeenAtMs = this.#nowMs();
    result.waitsSinceMs = result.lastSeenAtMs;
    result.askedTo = Math.max(result.askedTo, result.received);
    if (result.received < result.length) {
      this.#askOn();
      return null;
    }
    this.#remove(result);
    return { bytes: buffer.bytes, giveBack: () => giveBack(result) };
  }

  /** Nobody waits for it any more, or another attempt begins. */
  drop(requestId: string): void {
    const result = this.#results.get(requestId);
    if (result === undefined) return;
    result.dropped.abort();
    giveBack(result);
    this.#remove(result);
  }

  #remove(result: IncomingResult): void {
    this.#askedBytes -= result.askedTo - result.received;
    this.#results.delete(result.requestId);
    this.#dequeue(result);
    this.#askOn();
  }

  /** Whether a result was offered: then the request is settled, and whoever runs it again brings it for the same money. */
  has(requestId: string): boolean {
    return this.#results.has(requestId);
  }

  /** Once a second: what does not come is asked for again, after others that wait. */
  remind(): void {
    const nowMs = this.#nowMs();
    for (const result of this.#results.values()) {
      if (result.askedTo === result.received || nowMs - result.lastSeenAtMs < patienceMs) continue;
      this.#askedBytes -= result.askedTo - result.received;
      result.askedTo = result.received;
      result.waitsSinceMs = nowMs;
      this.#dequeue(result);
      this.#enqueue(result);
    }
    this.#askOn();
  }

  /** How long nothing has come of a result that was asked for; 0 where there is none, or it waits here. */
  silentForMs(requestId: string): number {
    const result = this.#results.get(requestId);
    if (result === undefined || result.askedTo === result.received) return 0;
    return this.#nowMs() - result.lastSeenAtMs;
  }

  #enqueue(result: IncomingResult): void {
    result.entry = this.#queue.add(result.accountId, result);
  }

  #dequeue(result: IncomingResult): void {
    if (result.entry !== null) this.#queue.remove(result.entry);
    result.entry = null;
  }

  #askOn(): void {
    for (;;) {
      const room = Math.floor((maxAskedBytes - this.#askedBytes) / pieceBytes) * pieceBytes;
      const next = this.#queue.peek();
      if (room <= 0 || next === undefined) return;
      this.#askFor(next.item, this.#queue.holderCount > 1 ? Math.min(room, turnBytes) : room);
      this.#queue.rotate(next.holder);
    }
  }

  #askFor(result: IncomingResult, mostBytes: number): void {
    if (result.askedTo === result.received) result.lastSeenAtMs += this.#nowMs() - result.waitsSinceMs;
    const end = Math.min(result.length, result.askedTo + mostBytes);
    this.#askedBytes += end - result.askedTo;
    result.askedTo = end;
    if (end === result.length) this.#dequeue(result);
    this.#requests.ask(result.requestId, end);
  }
}

/** May be called again. */
function giveBack({ buffer, share }: IncomingResult): void {
  buffer?.giveBack();
  share?.release();
}
