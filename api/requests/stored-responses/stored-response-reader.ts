// decisions 0031, 0064
import type { HeartbeatRequest } from '../../../shared/money/reservation-store.ts';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { maxInlineBytes } from '../../../shared/work/queue/payload-limits.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import {
  responseGone,
  decodeStored,
  type ResponseStore,
} from '../../../shared/work/replies/response-store.ts';
import { readErrorPayload } from '../../../shared/work/replies/error-payload.ts';
import { FrameOrder } from '../replies/frame-order.ts';
import { decodeFirstFrame, type Frame } from '../../../shared/work/replies/frame.ts';
import type { StoredFramesStore } from '../../../shared/work/replies/stored-frames-store.ts';
import { unpooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { ResponseAvailability } from './response-availability.ts';
import type { Receiver } from '../replies/pending-reply.ts';
import { acquireResponseMemory, trackShare } from '../replies/response-memory.ts';

/**
 * Frames announced to this process are read immediately. Frames of another process's requests are polled, at growing
 * intervals while none arrive.
 */
const minPollMs = 100;
const maxPollMs = 1_000;

/** Size of the first read, when the size of the response is unknown. A single-frame response fits into one read. */
const firstWindowBytes = maxInlineBytes + 1_024;
/**
 * Size of a read if many stored frames have not been read yet. Such a read needs memory for its window and for the
 * remainder of the previous one.
 */
const backlogWindowBytes = 256 * 1024;
const backlogMemoryBytes = 2 * backlogWindowBytes;

const emptyBuffer = Buffer.alloc(0);

export interface StoredResponsesDeps {
  readonly redis: RedisClient;
  readonly frames: StoredFramesStore;
  readonly responses: ResponseStore;
  /** Memory for responses until their callers have read them. */
  readonly memory: FairBudget;
  readonly log: Logger;
}

/** A reader's handle on a stored response. */
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
  readonly #deps: StoredResponsesDeps;
  readonly #request: HeartbeatRequest;
  readonly #receiver: Receiver;
  readonly #options: ReaderOptions;
  readonly #availability: ResponseAvailability;
  readonly #order = new FrameOrder();
  /** Aborted when the response has ended or the reader is cancelled. */
  readonly #ended = new AbortController();
  /** Bytes of frames read so far, including those in `#unread`. */
  #offset = 0;
  /** Bytes read but not yet passed to the receiver. */
  #unread: Buffer = emptyBuffer;
  /** Bytes of frames in the object store; null while they are in Redis. */
  #movedBytes: number | null = null;
  /**
   * Memory for large windows. Acquired when a read fills its window, and held until all bytes read have been passed to
   * the receiver.
   */
  #memory: BudgetShare | null = null;
  #isCaughtUp = true;
  #isPaused = false;
  #hasOutput = false;
  /** Whether `wake` was called since the last wait. */
  #wasWoken = false;
  #pollMs = minPollMs;
  #wake: (() => void) | null = null;

  constructor(
    deps: StoredResponsesDeps,
    request: HeartbeatRequest,
    receiver: Receiver,
    options: ReaderOptions,
  ) {
    this.#deps = deps;
    this.#availability = new ResponseAvailability(deps.redis, request, options.succeededAttempt ?? null);
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
    this.#ended.abort(new AppError('job_cancelled'));
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
    this.#wasWoken = true;
    this.#wake?.();
  }

  get #hasEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Resolves after the last call to the receiver, or after cancellation. */
  async run(): Promise<void> {
    try {
      while (!this.#hasEnded) {
        const hasMore = this.#isPaused ? false : await this.#advance();
        if (!hasMore && !this.#hasEnded) await this.#waitForMore();
      }
    } catch (error) {
      // The request itself may have ended, and have been charged, while its response could not be read.
      const failure = isReadFailure(error)
        ? toAppError(error).asPossiblyCharged(this.#request.requestId)
        : toAppError(error);
      this.#end(() => this.#receiver.fail(failure));
    } finally {
      this.#releaseMemory();
    }
  }

  /** @returns whether more may be available immediately */
  async #advance(): Promise<boolean> {
    await this.#passFramesOn();
    if (this.#hasEnded || this.#isPaused) return false;
    if (this.#isCaughtUp) this.#releaseMemory();
    const windowBytes = this.#memory === null ? firstWindowBytes : backlogWindowBytes;
    const bytes = await this.#readWindow(windowBytes);
    this.#isCaughtUp = bytes.length < windowBytes;
    // If no memory is available, the reader continues with small windows, which need no more memory than its
    // connection.
    if (!this.#isCaughtUp) this.#memory ??= this.#acquireBacklogMemory();
    if (bytes.length > 0) {
      if (this.#offset === 0 && !(await this.#mayBegin())) return this.#pollLater();
      this.#offset += bytes.length;
      // What remains of the previous window is the beginning of a frame that continues in this one.
      this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
      this.#pollMs = minPollMs;
      return true;
    }
    await this.#availability.checkAlive();
    return this.#pollLater();
  }

  async #mayBegin(): Promise<boolean> {
    if (!(await this.#availability.maySend())) return false;
    const { lastAttempt } = this.#availability;
    if (lastAttempt !== null) this.#order.restart(lastAttempt);
    return true;
  }

  #pollLater(): false {
    this.#pollMs = Math.min(maxPollMs, this.#pollMs * 1.5);
    return false;
  }

  async #readWindow(windowBytes: number): Promise<Buffer> {
    const { frames, responses } = this.#deps;
    if (this.#movedBytes === null) {
      const read = await frames.readFrames(this.#request, this.#offset, windowBytes);
      if ('bytes' in read) return read.bytes;
      this.#movedBytes = read.movedBytes;
    }
    // The moved frames include the last one. The reader ends at the last one and has not reached it yet, so there is
    // more to read.
    return await responses.readMovedFrames(this.#request, this.#movedBytes, this.#offset, windowBytes);
  }

  async #passFramesOn(): Promise<void> {
    while (!this.#hasEnded && !this.#isPaused) {
      const first = decodeFirstFrame(this.#unread);
      if (first === null) return;
      const isLast = first.byteLength === this.#unread.length;
      this.#unread = isLast ? emptyBuffer : this.#unread.subarray(first.byteLength);
      await this.#handleFrame(first.frame);
    }
  }

  async #handleFrame(frame: Frame): Promise<void> {
    const { attempt } = this.#order;
    const order = this.#order.classify(frame);
    if (order === 'stale') return;
    if (this.#hasOutput && frame.attempt !== attempt && frame.kind !== 'error')
      throw this.#createError('The response was interrupted and restarted.');
    // An error frame explains why frames are missing.
    if (order === 'gap' && frame.kind !== 'error')
      throw this.#createError('Part of the stored response was lost.');
    switch (frame.kind) {
      case 'accepted':
      // Results of stored responses come as `stored` frames; there are no `offered` frames or pieces.
      case 'offered':
      case 'piece':
      case 'moved':
      // Never stored.
      case 'facts':
      case 'mark':
        return;
      case 'delta':
        this.#hasOutput = true;
        this.#receiver.delta(frame.payload);
        return;
      case 'result':
        this.#end(() => this.#receiver.end(unpooledBuffer(frame.payload)));
        return;
      case 'stored':
        await this.#endWithStored(frame.payload);
        return;
      case 'error':
        this.#end(() => this.#receiver.fail(readErrorPayload(frame.payload, frame.requestId)));
        return;
      default:
        frame.kind satisfies never;
    }
  }

  /** Reads the stored result and passes it to the receiver, which then owns the acquired memory and releases it. */
  async #endWithStored(payload: Buffer): Promise<void> {
    const stored = decodeStored(payload);
    this.#releaseMemory();
    const { memory: budget, responses } = this.#deps;
    const { accountId } = this.#request;
    const memory = this.#options.hasMemory
      ? null
      : await acquireResponseMemory(budget, accountId, {
          bytes: stored.bytes,
          signal: this.#ended.signal,
          response: this.#receiver.response ?? null,
        });
    try {
      const bytes = await responses.read(this.#request, stored);
      this.#ended.signal.throwIfAborted();
      if (bytes === null) throw responseGone();
      this.#end(() => this.#receiver.end({ bytes, release: () => memory?.release() }));
    } catch (error) {
      memory?.release();
      throw error;
    }
  }

  #createError(message: string): AppError {
    const possiblyChargedId = this.#request.requestId;
    return new AppError('service_unavailable', { message, possiblyChargedId });
  }

  #acquireBacklogMemory(): BudgetShare | null {
    const { memory } = this.#deps;
    const share = memory.tryAcquire(this.#request.accountId, backlogMemoryBytes);
    const { response } = this.#receiver;
    if (share !== null && response !== undefined) trackShare(response, memory, share);
    return share;
  }

  #releaseMemory(): void {
    this.#memory?.release();
    this.#memory = null;
  }

  #end(notify: () => void): void {
    if (this.#hasEnded) return;
    this.#ended.abort();
    notify();
  }

  /** Waits until the next poll or a call of `wake`. Does not poll while the receiver is paused. */
  async #waitForMore(): Promise<void> {
    if (!this.#wasWoken) {
      await new Promise<void>((resolve) => {
        const timer = this.#isPaused ? undefined : setTimeout(resolve, this.#pollMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = null;
    }
    this.#wasWoken = false;
  }
}

/** Whether a store failed, in contrast to the errors that the request itself ended with. */
const isReadFailure = (error: unknown): boolean =>
  error instanceof AppError ? error.code === 'service_unavailable' && error.cause !== undefined : true;
