import { toAppError, type AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { FairQueue, type QueueEntry } from '../../shared/fairness/fair-queue.ts';
import { pieceBytes } from '../../shared/reply/frame.ts';
import { BufferPool, type PooledBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';

/**
 * Redis disconnects a subscriber with 32 MB of pending output, or with 8 MB for a minute. This caps the bytes in transit
 * to this process, however many workers have results for it and however slow it is.
 */
const maxAskedBytes = 6 * 1024 * 1024;
/** A requested result that stays silent this long gives up its capacity to others. Its worker may be dead. */
const patienceMs = 2_000;

/** Bytes requested for one account before the next account's turn. */
const turnBytes = 4 * pieceBytes;

/** Buffers in which results are assembled and held until they are written to their callers. */
const buffers = new BufferPool(64 * 1024 * 1024);

/**
 * Acquires the memory for a result. Resolves to null if none is needed.
 * @throws AppError if no memory becomes available in time; the signal's reason
 */
export type AcquireMemory = (signal: AbortSignal) => Promise<BudgetShare | null>;

/** Callbacks for what results need besides their bytes. */
export interface ResultRequests {
  /** Asks the worker to send the request's result up to this byte. */
  ask(requestId: string, upToByte: number): void;
  /** Reports that there is no memory for the result. The result has been dropped. */
  refuse(requestId: string, error: AppError): void;
}

interface IncomingResult {
  readonly requestId: string;
  readonly accountId: string;
  readonly length: number;
  /** Aborted when the result is dropped, which may be while it waits for memory. */
  readonly dropped: AbortController;
  share: BudgetShare | null;
  /** Null until the first piece has arrived. */
  buffer: PooledBuffer | null;
  received: number;
  /** Bytes up to here have been requested. If it equals `received`, the result waits for memory or for its turn. */
  askedTo: number;
  /** Null until memory is acquired, and again once everything has been requested. */
  entry: QueueEntry<IncomingResult> | null;
  waitsSinceMs: number;
  /** Excludes the time spent waiting here, which is not the worker's fault. */
  lastSeenAtMs: number;
}

/** Receives large results from workers, which send them in pieces as this process asks for them. */
export class IncomingResults {
  readonly #requests: ResultRequests;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #results = new Map<string, IncomingResult>();
  /** Results with parts not requested yet. */
  readonly #queue = new FairQueue<IncomingResult>();
  #askedBytes = 0;

  constructor(requests: ResultRequests, log: Logger, nowMs = () => performance.now()) {
    this.#requests = requests;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** @param acquire absent if memory was acquired before the request was dispatched */
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
    // The result may have been dropped at the moment the memory was granted.
    if (signal.aborted) result.share?.release();
    else this.#begin(result);
  }

  #begin(result: IncomingResult): void {
    this.#enqueue(result);
    this.#askOn();
  }

  /** @returns the complete result with its last piece, otherwise null */
  take(requestId: string, piece: Buffer): PooledBuffer | null {
    const result = this.#results.get(requestId);
    if (result === undefined) return null;
    // A piece that was taken for lost does not count as in transit any more.
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
    return { bytes: buffer.bytes, release: () => release(result) };
  }

  /** Drops a result because its caller is gone or another attempt begins. */
  drop(requestId: string): void {
    const result = this.#results.get(requestId);
    if (result === undefined) return;
    result.dropped.abort();
    release(result);
    this.#remove(result);
  }

  #remove(result: IncomingResult): void {
    this.#askedBytes -= result.askedTo - result.received;
    this.#results.delete(result.requestId);
    this.#dequeue(result);
    this.#askOn();
  }

  /** Whether a result was offered. If so, the request is settled, and another run of it is not charged again. */
  has(requestId: string): boolean {
    return this.#results.has(requestId);
  }

  /** Called once a second. Requests silent results again, after the others that wait. */
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

  /** Time since a requested result was last heard from (ms); 0 if there is no such result or it waits here. */
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

/** Safe to call more than once. */
function release({ buffer, share }: IncomingResult): void {
  buffer?.release();
  share?.release();
}
