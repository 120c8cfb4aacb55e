import type { HeartbeatRequest } from '../../shared/billing/reservation-store.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { responseGone, decodeStored, type ResponseStore } from '../../shared/reply/response-store.ts';
import { readErrorPayload } from '../../shared/reply/error-payload.ts';
import { FrameOrder } from '../replies/frame-order.ts';
import { decodeFirstFrame, type Frame } from '../../shared/reply/frame.ts';
import type { StoredFramesStore } from '../../shared/reply/stored-frames-store.ts';
import { ownBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { ResponseAvailability } from './response-availability.ts';
import type { Receiver } from '../replies/pending-reply.ts';
import { acquireResponseMemory, noteShare } from '../replies/response-memory.ts';

/**
 * Frames announced to this process are read immediately. Frames of another process's requests are polled, at growing
 * intervals while none arrive.
 */
const shortestPollMs = 100;
const longestPollMs = 1_000;

/** Size of the first read, when nothing is known yet. A single-frame response arrives in one read. */
const firstWindowBytes = maxInlineBytes + 1_024;
/** Size of a read when frames have piled up and there is memory for both the window and the rest of the previous one. */
const backlogWindowBytes = 256 * 1024;
const backlogMemoryBytes = 2 * backlogWindowBytes;

const nothing = Buffer.alloc(0);

export interface StoredResponsesDeps {
  readonly redis: RedisClient;
  readonly frames: StoredFramesStore;
  readonly answers: ResponseStore;
  /** What responses may hold of this process's memory until their callers have read them. */
  readonly memory: FairBudget;
  readonly log: Logger;
}

/** A reader's handle on a kept response. */
export interface FollowedResponse {
  pause(): void;
  resume(): void;
  /** Stops reading. The work itself continues. */
  cancel(): void;
}

export interface ReaderOptions {
  /** Whether the caller acquired memory for a whole response up front. */
  readonly hasMemory: boolean;
  /** The final attempt of a durable job that is known to have succeeded. Skips the look-up. */
  readonly succeededAttempt?: number | undefined;
}

/**
 * Reads the frames of one request in order, in bounded windows, and passes them to one receiver. While the receiver
 * pauses, frames already read stay here; nothing is read twice.
 */
export class StoredResponseReader implements FollowedResponse {
  readonly #dependencies: StoredResponsesDeps;
  readonly #request: HeartbeatRequest;
  readonly #receiver: Receiver;
  readonly #options: ReaderOptions;
  readonly #prospect: ResponseAvailability;
  readonly #order = new FrameOrder();
  readonly #over = new AbortController();
  /** Bytes of frames read so far. Those not passed on yet are in `#unread`. */
  #offset = 0;
  #unread: Buffer = nothing;
  /** Bytes of frames in the object store; null while they are in Redis. */
  #movedBytes: number | null = null;
  /** Held from the first full window until everything read has been passed on. */
  #memory: BudgetShare | null = null;
  #isCaughtUp = true;
  #isPaused = false;
  #hasOutput = false;
  #isWoken = false;
  #pollMs = shortestPollMs;
  #wake: (() => void) | null = null;

  constructor(
    dependencies: StoredResponsesDeps,
    request: HeartbeatRequest,
    receiver: Receiver,
    options: ReaderOptions,
  ) {
    this.#dependencies = dependencies;
    this.#prospect = new ResponseAvailability(dependencies.redis, request, options.succeededAttempt ?? null);
    this.#request = request;
    this.#receiver = receiver;
    this.#options = options;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.wake();
  }

  cancel(): void {
    this.#over.abort(new AppError('job_cancelled'));
    this.wake();
  }

  get accountId(): string {
    return this.#request.accountId;
  }

  fail(error: AppError): void {
    this.#end(() => this.#receiver.fail(error));
    this.wake();
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Resolves after the receiver's last call or its cancellation. */
  async run(): Promise<void> {
    try {
      while (!this.#isOver) {
        const isMore = this.#isPaused ? false : await this.#advance();
        if (!isMore && !this.#isOver) await this.#rest();
      }
    } catch (error) {
      this.#end(() => this.#receiver.fail(toAppError(error)));
    } finally {
      this.#releaseMemory();
    }
  }

  /** @returns whether more may be available immediately */
  async #advance(): Promise<boolean> {
    await this.#handOver();
    if (this.#isOver || this.#isPaused) return false;
    if (this.#isCaughtUp) this.#releaseMemory();
    const windowBytes = this.#memory === null ? firstWindowBytes : backlogWindowBytes;
    const bytes = await this.#readOn(windowBytes);
    this.#isCaughtUp = bytes.length < windowBytes;
    // Without memory, the reader continues in small windows, which need no more than its connection does anyway.
    if (!this.#isCaughtUp) this.#memory ??= this.#acquireBacklogMemory();
    if (bytes.length > 0) {
      if (this.#offset === 0 && !(await this.#mayBegin())) return this.#lookLater();
      this.#offset += bytes.length;
      // The rest of the last window is the beginning of a frame.
      this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
      this.#pollMs = shortestPollMs;
      return true;
    }
    await this.#prospect.look();
    return this.#lookLater();
  }

  async #mayBegin(): Promise<boolean> {
    if (!(await this.#prospect.maySend())) return false;
    const { lastAttempt } = this.#prospect;
    if (lastAttempt !== null) this.#order.restart(lastAttempt);
    return true;
  }

  #lookLater(): false {
    this.#pollMs = Math.min(longestPollMs, this.#pollMs * 1.5);
    return false;
  }

  async #readOn(windowBytes: number): Promise<Buffer> {
    const { frames, answers } = this.#dependencies;
    if (this.#movedBytes === null) {
      const read = await frames.readFrames(this.#request, this.#offset, windowBytes);
      if ('bytes' in read) return read.bytes;
      this.#movedBytes = read.movedBytes;
    }
    // Moved frames are complete: the reader would have ended at their last byte.
    return await answers.readMovedFrames(this.#request, this.#movedBytes, this.#offset, windowBytes);
  }

  async #handOver(): Promise<void> {
    while (!this.#isOver && !this.#isPaused) {
      const first = decodeFirstFrame(this.#unread);
      if (first === null) return;
      const isLast = first.byteLength === this.#unread.length;
      this.#unread = isLast ? nothing : this.#unread.subarray(first.byteLength);
      await this.#take(first.frame);
    }
  }

  async #take(frame: Frame): Promise<void> {
    const { attempt } = this.#order;
    const place = this.#order.take(frame);
    if (place === 'stale') return;
    if (this.#hasOutput && frame.attempt !== attempt && frame.kind !== 'error')
      throw new AppError('service_unavailable', { message: 'The answer broke off and was begun again.' });
    // An error frame explains why frames are missing.
    if (place === 'gap' && frame.kind !== 'error')
      throw new AppError('service_unavailable', { message: 'A part of the kept answer was lost.' });
    switch (frame.kind) {
      case 'accepted':
      // A kept result is stored, never offered.
      case 'offered':
      case 'piece':
      case 'moved':
      case 'mark':
        return;
      case 'delta':
        this.#hasOutput = true;
        this.#receiver.delta(frame.payload);
        return;
      case 'result':
        this.#end(() => this.#receiver.end(ownBuffer(frame.payload)));
        return;
      case 'stored':
        await this.#takeStored(frame.payload);
        return;
      case 'error':
        this.#end(() => this.#receiver.fail(readErrorPayload(frame.payload)));
        return;
      default:
        frame.kind satisfies never;
    }
  }

  /** Passes the memory on with the response; the receiver gives it back. */
  async #takeStored(payload: Buffer): Promise<void> {
    const stored = decodeStored(payload);
    this.#releaseMemory();
    const { memory: budget, answers } = this.#dependencies;
    const { accountId } = this.#request;
    const memory = this.#options.hasMemory
      ? null
      : await acquireResponseMemory(budget, accountId, {
          bytes: stored.bytes,
          signal: this.#over.signal,
          response: this.#receiver.response ?? null,
        });
    try {
      const bytes = await answers.read(this.#request, stored);
      this.#over.signal.throwIfAborted();
      if (bytes === null) throw responseGone();
      this.#end(() => this.#receiver.end({ bytes, release: () => memory?.release() }));
    } catch (error) {
      memory?.release();
      throw error;
    }
  }

  #acquireBacklogMemory(): BudgetShare | null {
    const { memory } = this.#dependencies;
    const share = memory.tryAcquire(this.#request.accountId, backlogMemoryBytes);
    const { response } = this.#receiver;
    if (share !== null && response !== undefined) noteShare(response, memory, share);
    return share;
  }

  #releaseMemory(): void {
    this.#memory?.release();
    this.#memory = null;
  }

  #end(tell: () => void): void {
    if (this.#isOver) return;
    this.#over.abort();
    tell();
  }

  /** Does not poll while the receiver is paused. */
  async #rest(): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        const timer = this.#isPaused ? undefined : setTimeout(resolve, this.#pollMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = null;
    }
    this.#isWoken = false;
  }
}
