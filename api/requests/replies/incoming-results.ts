// decision 0023
import { toAppError, type AppError } from '../../../shared/contract/errors.ts';
import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import { FairQueue, type QueueEntry } from '../../../shared/fairness/fair-queue.ts';
import { pieceBytes } from '../../../shared/work/replies/frame.ts';
import { BufferPool, type PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';

/**
 * Redis disconnects a subscriber with 32 MB of pending output, or with 8 MB for a minute. This limit keeps the bytes in
 * transit to this process below that, even if many workers have results for it or it is slow.
 */
const maxRequestedBytes = 6 * 1024 * 1024;
/**
 * If no piece of a requested result arrives for this long, its worker may be dead, and other results are requested
 * first.
 */
const silenceTimeoutMs = 2_000;

/** Maximum bytes requested for one account before the next account in the fair queue gets its turn. */
const turnBytes = 4 * pieceBytes;

/** Buffers in which results are assembled. Each stays in use until its result has been written to the caller. */
const buffers = new BufferPool(64 * 1024 * 1024);

/**
 * Acquires the memory for a result. Resolves to null if none is needed.
 * @throws AppError if no memory becomes available in time; the signal's reason
 */
export type AcquireMemory = (signal: AbortSignal) => Promise<BudgetShare | null>;

/** Callbacks for a result, implemented by its owner. */
export interface ResultRequests {
  /** Asks the worker to send the request's result up to this byte. */
  ask(requestId: string, upToByte: number): void;
  /** Reports that there is no memory for the result. The result has been dropped. */
  fail(requestId: string, error: AppError): void;
}

interface IncomingResult {
  readonly requestId: string;
  readonly accountId: string;
  readonly length: number;
  /** Aborted when the result is dropped, possibly while it waits for memory. */
  readonly dropped: AbortController;
  share: BudgetShare | null;
  /** Null until the first piece has arrived. */
  buffer: PooledBuffer | null;
  received: number;
  /**
   * Bytes up to here have been requested. If it equals `received`, the result waits for memory or for its fair-queue
   * turn.
   */
  requestedTo: number;
  /** Null until memory is acquired, and again once everything has been requested. */
  entry: QueueEntry<IncomingResult> | null;
  waitingSinceMs: number;
  /**
   * When the last piece arrived. If the result then waits in this process, this time is moved forward by the wait,
   * because no piece is expected during the wait.
   */
  lastSeenAtMs: number;
}

/** Receives large results from workers, which send them in pieces when this process requests them. */
export class IncomingResults {
  readonly #requests: ResultRequests;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #results = new Map<string, IncomingResult>();
  /** Results that have not been requested completely. */
  readonly #queue = new FairQueue<IncomingResult>();
  #requestedBytes = 0;

  constructor(requests: ResultRequests, log: Logger, nowMs = () => performance.now()) {
    this.#requests = requests;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** @param acquire acquires the memory for the result; absent if that was done before the request was dispatched */
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
      requestedTo: 0,
      entry: null,
      waitingSinceMs: nowMs,
      lastSeenAtMs: nowMs,
    };
    this.#results.set(requestId, result);
    if (acquire === undefined) this.#begin(result);
    else runInBackground(this.#beginWithMemory(result, acquire), 'receiving a large result', this.#log);
  }

  async #beginWithMemory(result: IncomingResult, acquire: AcquireMemory): Promise<void> {
    const { signal } = result.dropped;
    try {
      result.share = await acquire(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.drop(result.requestId);
      this.#requests.fail(result.requestId, toAppError(error));
      return;
    }
    // The result may have been dropped at the same moment as the memory was granted.
    if (signal.aborted) result.share?.release();
    else this.#begin(result);
  }

  #begin(result: IncomingResult): void {
    this.#enqueue(result);
    this.#requestNext();
  }

  /** Adds a piece. @returns the complete result if this is its last piece, otherwise null */
  take(requestId: string, piece: Buffer): PooledBuffer | null {
    const result = this.#results.get(requestId);
    if (result === undefined) return null;
    // If a piece was assumed lost but arrives after all, its bytes have already been subtracted from those in transit.
    this.#requestedBytes -= Math.min(piece.length, result.requestedTo - result.received);
    const buffer = (result.buffer ??= buffers.lend(result.length));
    result.received += piece.copy(buffer.bytes, result.received);
    result.lastSeenAtMs = this.#nowMs();
    result.waitingSinceMs = result.lastSeenAtMs;
    result.requestedTo = Math.max(result.requestedTo, result.received);
    if (result.received < result.length) {
      this.#requestNext();
      return null;
    }
    this.#remove(result);
    return { bytes: buffer.bytes, release: () => release(result) };
  }

  /** Drops a result because its caller has disconnected or another attempt begins. */
  drop(requestId: string): void {
    const result = this.#results.get(requestId);
    if (result === undefined) return;
    result.dropped.abort();
    release(result);
    this.#remove(result);
  }

  #remove(result: IncomingResult): void {
    this.#requestedBytes -= result.requestedTo - result.received;
    this.#results.delete(result.requestId);
    this.#dequeue(result);
    this.#requestNext();
  }

  /**
   * Whether a worker has offered a result. If so, the request is settled, and running it again does not charge it
   * again.
   */
  has(requestId: string): boolean {
    return this.#results.has(requestId);
  }

  /** Called once a second. Requests stalled results again, after all others that wait. */
  rerequestStalled(): void {
    const nowMs = this.#nowMs();
    for (const result of this.#results.values()) {
      if (result.requestedTo === result.received || nowMs - result.lastSeenAtMs < silenceTimeoutMs) continue;
      this.#requestedBytes -= result.requestedTo - result.received;
      result.requestedTo = result.received;
      result.waitingSinceMs = nowMs;
      this.#dequeue(result);
      this.#enqueue(result);
    }
    this.#requestNext();
  }

  /**
   * Time since the last piece of a requested result (ms); 0 if the result is unknown, or waits here for memory or its
   * turn.
   */
  silentForMs(requestId: string): number {
    const result = this.#results.get(requestId);
    if (result === undefined || result.requestedTo === result.received) return 0;
    return this.#nowMs() - result.lastSeenAtMs;
  }

  #enqueue(result: IncomingResult): void {
    result.entry = this.#queue.add(result.accountId, result);
  }

  #dequeue(result: IncomingResult): void {
    if (result.entry !== null) this.#queue.remove(result.entry);
    result.entry = null;
  }

  #requestNext(): void {
    for (;;) {
      const freeBytes = Math.floor((maxRequestedBytes - this.#requestedBytes) / pieceBytes) * pieceBytes;
      const next = this.#queue.peek();
      if (freeBytes <= 0 || next === undefined) return;
      this.#requestMore(next.item, this.#queue.holderCount > 1 ? Math.min(freeBytes, turnBytes) : freeBytes);
      this.#queue.rotate(next.holder);
    }
  }

  #requestMore(result: IncomingResult, maxBytes: number): void {
    if (result.requestedTo === result.received) result.lastSeenAtMs += this.#nowMs() - result.waitingSinceMs;
    const end = Math.min(result.length, result.requestedTo + maxBytes);
    this.#requestedBytes += end - result.requestedTo;
    result.requestedTo = end;
    if (end === result.length) this.#dequeue(result);
    this.#requests.ask(result.requestId, end);
  }
}

/** Idempotent. */
function release({ buffer, share }: IncomingResult): void {
  buffer?.release();
  share?.release();
}
