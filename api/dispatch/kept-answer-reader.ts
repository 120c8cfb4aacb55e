import type { HeldRequest } from '../../shared/billing/reservation-store.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { answerGone, decodeStored, type AnswerStore } from '../../shared/reply/answer-store.ts';
import { readErrorPayload } from '../../shared/reply/error-payload.ts';
import { FrameOrder } from '../../shared/reply/frame-order.ts';
import { decodeFirstFrame, type Frame } from '../../shared/reply/frame.ts';
import type { KeptFramesStore } from '../../shared/reply/kept-frames-store.ts';
import { ownBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { AnswerProspect } from './answer-prospect.ts';
import type { Receiver } from './waiter.ts';
import { acquireResponseMemory, noteShare } from './response-memory.ts';

/**
 * Frames that this process is told of are read at once; those of another's requests after so long, and while none come
 * after ever longer.
 */
const shortestPollMs = 100;
const longestPollMs = 1_000;

/** Read at once where nothing is known of what is there: an answer in one frame comes with one read. */
const firstWindowBytes = maxInlineBytes + 1_024;
/** Read at once of what has piled up, where there is memory for it: for the window and for what is left of the last. */
const backlogWindowBytes = 256 * 1024;
const backlogMemoryBytes = 2 * backlogWindowBytes;

const nothing = Buffer.alloc(0);

export interface KeptAnswersDependencies {
  readonly redis: RedisClient;
  readonly frames: KeptFramesStore;
  readonly answers: AnswerStore;
  /** What answers may hold of this process until their callers have read them. */
  readonly memory: FairBudget;
  readonly log: Logger;
}

/** A kept answer, as whoever reads it holds it. */
export interface FollowedAnswer {
  pause(): void;
  resume(): void;
  /** The reader has gone; the work goes on. */
  cancel(): void;
}

export interface ReaderOptions {
  /** The caller has acquired memory for a whole answer before it asked for one. */
  readonly hasMemory: boolean;
  /** Of a durable job that is known to have succeeded: the attempt whose answer counts. It is not asked for again. */
  readonly succeededAttempt?: number | undefined;
}

/**
 * Reads the frames of one request in order, in bounded windows, and hands them to one receiver. What was read and not
 * handed over yet stays here while the receiver pauses; nothing is read twice.
 */
export class KeptAnswerReader implements FollowedAnswer {
  readonly #dependencies: KeptAnswersDependencies;
  readonly #request: HeldRequest;
  readonly #receiver: Receiver;
  readonly #options: ReaderOptions;
  readonly #prospect: AnswerProspect;
  readonly #order = new FrameOrder();
  readonly #over = new AbortController();
  /** How many bytes of the frames were read; those that were not handed over yet are `unread`. */
  #offset = 0;
  #unread: Buffer = nothing;
  /** How many bytes of frames the object store has; null while they are in Redis. */
  #movedBytes: number | null = null;
  /** Held from the first full window until all that was read has been handed over. */
  #memory: BudgetShare | null = null;
  #isCaughtUp = true;
  #isPaused = false;
  #hasOutput = false;
  #isWoken = false;
  #pollMs = shortestPollMs;
  #wake: (() => void) | null = null;

  constructor(
    dependencies: KeptAnswersDependencies,
    request: HeldRequest,
    receiver: Receiver,
    options: ReaderOptions,
  ) {
    this.#dependencies = dependencies;
    this.#prospect = new AnswerProspect(dependencies.redis, request, options.succeededAttempt ?? null);
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

  /** Resolves when the receiver has had its last call, or has cancelled. */
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

  /** @returns whether there may be more at once */
  async #advance(): Promise<boolean> {
    await this.#handOver();
    if (this.#isOver || this.#isPaused) return false;
    if (this.#isCaughtUp) this.#releaseMemory();
    const windowBytes = this.#memory === null ? firstWindowBytes : backlogWindowBytes;
    const bytes = await this.#readOn(windowBytes);
    this.#isCaughtUp = bytes.length < windowBytes;
    // A reader that is refused goes on in small windows: that holds no more than its connection does anyway.
    if (!this.#isCaughtUp) this.#memory ??= this.#acquireBacklogMemory();
    if (bytes.length > 0) {
      if (this.#offset === 0 && !(await this.#mayBegin())) return this.#lookLater();
      this.#offset += bytes.length;
      // What was left is the beginning of a frame.
      this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
      this.#pollMs = shortestPollMs;
      return true;
    }
    await this.#prospect.look();
    return this.#lookLater();
  }

  async #mayBegin(): Promise<boolean> {
    if (!(await this.#prospect.mayBeTold())) return false;
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
    // Frames that have moved are complete: past their last byte the reader would have ended.
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
    // An error says why frames are missing.
    if (place === 'gap' && frame.kind !== 'error')
      throw new AppError('service_unavailable', { message: 'A part of the kept answer was lost.' });
    switch (frame.kind) {
      case 'accepted':
      case 'progress':
      // What is kept is stored instead of offered.
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

  /** The answer's memory is its receiver's to give back. */
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
      if (bytes === null) throw answerGone();
      this.#end(() => this.#receiver.end({ bytes, giveBack: () => memory?.release() }));
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

  /** Nothing is polled for a receiver that has paused. */
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
