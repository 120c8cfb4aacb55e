import type { HeldRequest } from '../../shared/billing/reservation-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import type { AnswerStore } from '../../shared/reply/answer-store.ts';
import { readErrorPayload } from '../../shared/reply/error-payload.ts';
import { FrameOrder } from '../../shared/reply/frame-order.ts';
import { decodeFrames, type Frame } from '../../shared/reply/frame.ts';
import { keepFrame } from '../../shared/reply/kept-frames.ts';
import { ownBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Receiver } from './reply-waiters.ts';

/**
 * Frames that this process is told of are read at once; those of another's requests after so long, and while none come
 * after ever longer.
 */
const shortestPollMs = 100;
const longestPollMs = 1_000;
const framesPerRead = 200;
/** How often it is asked whether an answer that does not come can still come. */
const lookIntervalMs = 1_000;
/** From the end of a request to its last frame; a worker that died in between is replaced within it. */
const lastFramePatienceMs = 15_000;

/** A kept answer, as whoever reads it holds it. */
export interface FollowedAnswer {
  pause(): void;
  resume(): void;
  /** The reader has gone; the work goes on. */
  cancel(): void;
}

/**
 * Answers that are kept beyond their socket: whoever asks, once or again, reads the request's frames from its own stream
 * in Redis, from the beginning and on to the end.
 */
export class KeptAnswers {
  readonly #redis: RedisClient;
  readonly #answers: AnswerStore;
  readonly #log: Logger;
  readonly #followers = new Map<string, Set<Follower>>();

  constructor(redis: RedisClient, answers: AnswerStore, log: Logger) {
    this.#redis = redis;
    this.#answers = answers;
    this.#log = log;
  }

  /** Hands the receiver a request's answer, as far as it has come and as it comes. */
  follow(request: HeldRequest, receiver: Receiver): FollowedAnswer {
    const { requestId } = request;
    const follower = new Follower(request, receiver, this.#redis, this.#answers);
    const others = this.#followers.get(requestId) ?? new Set();
    others.add(follower);
    this.#followers.set(requestId, others);
    void follower.run().finally(() => {
      others.delete(follower);
      if (others.size === 0 && this.#followers.get(requestId) === others) this.#followers.delete(requestId);
    });
    return follower;
  }

  /** A receiver for who owns the request: the frames reach their readers through the stream. */
  createOwner(request: HeldRequest): Receiver {
    const wake = (): void => {
      for (const follower of this.#followers.get(request.requestId) ?? []) follower.wake();
    };
    return { delta: wake, end: wake, fail: (error) => this.fail(request, error) };
  }

  /** Ends an answer that will not come. Where the worker ended it before, its readers have stopped there. */
  fail({ requestId }: HeldRequest, error: AppError): void {
    const payload = Buffer.from(JSON.stringify({ code: error.code, message: error.publicMessage }));
    const frame: Frame = { requestId, attempt: maxAttempt, sequence: 0, kind: 'error', tokens: 0, payload };
    keepFrame(this.#redis, frame).catch((failure: unknown) => {
      this.#log.warn({ requestId, err: failure }, 'the end of a kept answer could not be told');
    });
    for (const follower of this.#followers.get(requestId) ?? []) follower.wake();
  }
}

/** Later than any attempt: the frame is the first of its own. */
const maxAttempt = 0xffff;

class Follower implements FollowedAnswer {
  readonly #request: HeldRequest;
  readonly #receiver: Receiver;
  readonly #redis: RedisClient;
  readonly #answers: AnswerStore;
  readonly #order = new FrameOrder();
  #lastId = '-';
  #isOver = false;
  #isPaused = false;
  #hasOutput = false;
  #isWoken = false;
  #pollMs = shortestPollMs;
  #wake: (() => void) | null = null;
  #lookedAtMs = performance.now();
  #endedAtMs: number | null = null;

  constructor(request: HeldRequest, receiver: Receiver, redis: RedisClient, answers: AnswerStore) {
    this.#request = request;
    this.#receiver = receiver;
    this.#redis = redis;
    this.#answers = answers;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.wake();
  }

  cancel(): void {
    this.#isOver = true;
    this.wake();
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  async run(): Promise<void> {
    try {
      while (!this.#isOver) {
        const isMore = this.#isPaused ? false : await this.#readFrames();
        if (!isMore && !this.#isOver) await this.#rest();
      }
    } catch (error) {
      this.#end(() =>
        this.#receiver.fail(
          error instanceof AppError ? error : new AppError('internal_error', { cause: error }),
        ),
      );
    }
  }

  /** @returns whether there may be more */
  async #readFrames(): Promise<boolean> {
    const stream = redisKeys.keptFrames(this.#request.requestId);
    const from = this.#lastId === '-' ? '-' : `(${this.#lastId}`;
    const entries = await callRedis(() =>
      this.#redis.xrangeBuffer(stream, from, '+', 'COUNT', framesPerRead),
    );
    for (const [id, [, bytes]] of entries) {
      this.#lastId = id.toString();
      for (const frame of decodeFrames(bytes!)) await this.#take(frame);
      if (this.#isOver || this.#isPaused) return false;
    }
    if (entries.length > 0) {
      this.#pollMs = shortestPollMs;
      return true;
    }
    this.#pollMs = Math.min(longestPollMs, this.#pollMs * 1.5);
    await this.#look();
    return false;
  }

  async #take(frame: Frame): Promise<void> {
    const { attempt } = this.#order;
    const place = this.#order.take(frame);
    if (this.#isOver || place === 'stale') return;
    if (this.#hasOutput && frame.attempt !== attempt && frame.kind !== 'error')
      throw new AppError('service_unavailable', { message: 'The answer broke off and was begun again.' });
    if (place === 'gap')
      throw new AppError('service_unavailable', { message: 'A part of the kept answer was lost.' });
    switch (frame.kind) {
      case 'accepted':
      case 'progress':
      // What is kept is stored instead of offered.
      case 'offered':
      case 'piece':
        return;
      case 'delta':
        this.#hasOutput = true;
        this.#receiver.delta(frame.payload);
        return;
      case 'result':
        this.#end(() => this.#receiver.end(ownBuffer(frame.payload)));
        return;
      case 'stored': {
        const bytes = await this.#answers.read(frame.payload.toString());
        if (bytes === null)
          throw new AppError('service_unavailable', { message: 'The kept answer is not there any more.' });
        this.#end(() => this.#receiver.end(ownBuffer(bytes)));
        return;
      }
      case 'error':
        this.#end(() => this.#receiver.fail(readErrorPayload(frame.payload)));
        return;
      default:
        frame.kind satisfies never;
    }
  }

  /** A request that holds nothing any more has ended: its last frame is there, or about to be, or lost. */
  async #look(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < lookIntervalMs) return;
    this.#lookedAtMs = nowMs;
    const { requestId, accountId } = this.#request;
    const reservations = redisKeys.reservations(shardOf(accountId));
    if ((await callRedis(() => this.#redis.hexists(reservations, requestId))) === 1) {
      this.#endedAtMs = null;
      return;
    }
    this.#endedAtMs ??= nowMs;
    if (nowMs - this.#endedAtMs > lastFramePatienceMs)
      throw new AppError('service_unavailable', { message: 'The request ended without an answer.' });
  }

  #end(tell: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    tell();
  }

  async #rest(): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#pollMs);
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
