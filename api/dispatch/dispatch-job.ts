import type { ServerResponse } from 'node:http';
import type { FinishDependencies } from '../../shared/billing/finish-request.ts';
import type { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { isKept, type AdmittedRequest, type QueueName } from '../../shared/queue/job-kinds.ts';
import { CancelledStore } from '../../shared/queue/cancelled-store.ts';
import { FrameOrder } from '../../shared/reply/frame-order.ts';
import type { CancelCause } from '../../shared/reply/reply-channel.ts';
import type { LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { release } from './abandon-request.ts';
import type { FollowedAnswer, ReaderOptions } from './kept-answer-reader.ts';
import type { KeptAnswers, StreamedAnswer } from './kept-answers.ts';
import type { ReplyWaiters } from './reply-waiters.ts';
import type { Receiver, Waiter, WaiterOwner } from './waiter.ts';

interface JobWaiter extends Waiter {
  /** Whether a worker may find it on its queue. */
  isQueued: boolean;
  onLeft: () => void;
}

/** A request whose job is on one of BullMQ's queues. */
export interface QueuedJob {
  /** Calls back once nothing is done for the request any more: its caller may have left before. */
  whenEnded(callback: () => void): void;
  /** Calls back when its caller leaves while it lies on its queue, or runs. */
  whenLeft(callback: () => void): void;
  /** It is about to lie on its queue: from now on a worker releases what it holds. @returns false where it has ended */
  markQueued(): boolean;
  /** The caller has gone: by its own choice, unless the cause says otherwise. */
  cancel(cause?: CancelCause): void;
  /** The job never came to lie on its queue. */
  fail(error: AppError): void;
}

/** One whose whole answer is awaited. */
export interface AwaitedJob extends QueuedJob {
  readonly answer: Promise<LentBuffer>;
}

/** One whose answer is streamed to a receiver. */
export type StreamedJob = StreamedAnswer;

/** The length of an embedding's answer is known before it is asked for: its memory is acquired then, and for no response. */
const readerOptions = (response: ServerResponse | undefined, succeededAttempt?: number): ReaderOptions => ({
  hasMemory: response === undefined,
  succeededAttempt,
});

/** A job that waits for its worker is in hand without any process; so much longer than its deadline, to be sure. */
const deadlineSlackMs = 60_000;

/** Waits for the answers of durable jobs. A job whose worker dies is run again by BullMQ, so waiting simply goes on. */
export class JobWaiting implements WaiterOwner {
  readonly #dependencies: FinishDependencies;
  readonly #waiters: ReplyWaiters;
  readonly #kept: KeptAnswers;
  readonly #reservations: ReservationStore;
  readonly #cancelled: CancelledStore;
  readonly #log: Logger;

  constructor(
    dependencies: FinishDependencies,
    waiters: ReplyWaiters,
    kept: KeptAnswers,
    reservations: ReservationStore,
    log: Logger,
  ) {
    this.#dependencies = dependencies;
    this.#waiters = waiters;
    this.#kept = kept;
    this.#reservations = reservations;
    this.#cancelled = new CancelledStore(dependencies.redis);
    this.#log = log;
  }

  get replyChannel(): string {
    return this.#waiters.channel;
  }

  /** How many requests of an account wait on a queue of durable jobs, or run. */
  countOf(queue: QueueName, accountId: string): number {
    return this.#waiters.countOf(queue, accountId);
  }

  /** @param response that the answer is for, where memory for it is acquired once it is there */
  await(request: AdmittedRequest, queue: QueueName, response?: ServerResponse): AwaitedJob {
    const { receiver, answer } = this.#receive(response);
    const { job } = this.#start(request, queue, receiver);
    return {
      ...job,
      answer,
      cancel: () => {
        job.cancel();
        receiver.fail(new AppError('job_cancelled'));
      },
    };
  }

  /** Hands the receiver the answer as it comes. */
  stream(request: AdmittedRequest, queue: QueueName, receiver: Receiver): QueuedJob & StreamedJob {
    const { job, waiter, reader } = this.#start(request, queue, receiver);
    const controls: Pick<FollowedAnswer, 'pause' | 'resume'> = reader ?? {
      pause: () => this.#waiters.control(waiter, 'pause'),
      resume: () => this.#waiters.control(waiter, 'resume'),
    };
    return {
      ...job,
      position: () => null,
      pause: () => controls.pause(),
      resume: () => controls.resume(),
    };
  }

  #start(
    request: AdmittedRequest,
    queue: QueueName,
    receiver: Receiver,
  ): { job: QueuedJob; waiter: JobWaiter; reader: FollowedAnswer | null } {
    const hasKeptAnswer = isKept(request);
    const callbacks: (() => void)[] = [];
    let hasEnded = false;
    const waiter: JobWaiter = {
      request,
      queue,
      order: new FrameOrder(),
      workerId: null,
      hasOutput: false,
      tokens: 0,
      isQueued: false,
      onLeft: () => undefined,
      onEnded: () => {
        hasEnded = true;
        for (const callback of callbacks) callback();
      },
      receiver: hasKeptAnswer ? this.#kept.createOwner(request) : receiver,
    };
    try {
      this.#waiters.add(waiter, this);
    } catch (error) {
      release(this.#dependencies, request, this.#log);
      if (hasKeptAnswer) waiter.receiver.fail(new AppError('service_unavailable', { cause: error }));
      throw error;
    }
    if (hasKeptAnswer) this.#holdThroughQueue(request);
    const reader = hasKeptAnswer
      ? this.#kept.follow(request, receiver, readerOptions(receiver.response))
      : null;
    const job: QueuedJob = {
      whenEnded: (callback) => {
        if (hasEnded) callback();
        else callbacks.push(callback);
      },
      whenLeft: (callback) => {
        waiter.onLeft = callback;
      },
      markQueued: () => {
        waiter.isQueued = true;
        return !hasEnded;
      },
      cancel: (cause) => {
        if (reader !== null) reader.cancel();
        else this.#cancel(waiter, cause);
      },
      fail: (error) => {
        this.#release(waiter);
        this.#waiters.fail(waiter, error);
        this.#waiters.endLeft(request.requestId);
      },
    };
    return { job, waiter, reader };
  }

  /**
   * The answer of a request that was sent before, under the same Idempotency-Key, or that is a durable job.
   * @param response that the answer is for, where memory for it is acquired once it is there
   * @param succeededAttempt of a durable job that is known to have succeeded
   */
  attach(
    request: Pick<AdmittedRequest, 'requestId' | 'accountId'>,
    response?: ServerResponse,
    succeededAttempt?: number,
  ): Pick<AwaitedJob, 'answer' | 'cancel'> {
    const { receiver, answer } = this.#receive(response);
    const reader = this.#kept.follow(request, receiver, readerOptions(response, succeededAttempt));
    return {
      answer,
      cancel: () => {
        reader.cancel();
        receiver.fail(new AppError('job_cancelled'));
      },
    };
  }

  /** The same, of one that was streamed. */
  attachStream(request: Pick<AdmittedRequest, 'requestId' | 'accountId'>, receiver: Receiver): StreamedJob {
    return this.#kept.attachStream(request, receiver);
  }

  check(): void {
    // BullMQ notices a dead worker by its lock and gives the job to another.
  }

  abandon(waiter: JobWaiter): void {
    this.#release(waiter);
  }

  /** It may lie on its queue all the same: a worker that takes it later must not run what nobody pays for. */
  #release({ request, isQueued }: JobWaiter): void {
    release(this.#dependencies, request, this.#log);
    if (isQueued) this.#markCancelled(request);
  }

  withdraw(waiter: JobWaiter): boolean {
    this.#cancel(waiter);
    return true;
  }

  /** A whole answer as a promise. */
  #receive(response?: ServerResponse): { readonly receiver: Receiver; readonly answer: Promise<LentBuffer> } {
    let settle: { resolve: (answer: LentBuffer) => void; reject: (error: unknown) => void };
    const answer = new Promise<LentBuffer>((resolve, reject) => {
      settle = { resolve, reject };
    });
    // Whoever awaits it sees a failure; one that comes before somebody does must not end the process.
    answer.catch(() => undefined);
    const receiver: Receiver = {
      ...(response === undefined ? {} : { response }),
      delta: () => undefined,
      end: (bytes) => settle.resolve(bytes),
      fail: (error) => settle.reject(error),
    };
    return { receiver, answer };
  }

  #holdThroughQueue(request: AdmittedRequest): void {
    const forMs = request.deadlineAtMs - Date.now() + deadlineSlackMs;
    this.#reservations.hold([request], forMs).catch((error: unknown) => {
      this.#log.debug({ requestId: request.requestId, err: error }, 'what is in hand could not be told');
    });
  }

  /** A worker that has the request is told at once; one that takes it later finds the mark. */
  #cancel(waiter: JobWaiter, cause?: CancelCause): void {
    const { requestId } = waiter.request;
    if (!waiter.isQueued) {
      if (this.#waiters.remove(requestId)) release(this.#dependencies, waiter.request, this.#log);
      return;
    }
    this.#waiters.leave(requestId);
    waiter.onLeft();
    if (waiter.workerId !== null) {
      this.#waiters.control(waiter, 'cancel', cause);
      return;
    }
    this.#markCancelled(waiter.request);
  }

  #markCancelled({ requestId, deadlineAtMs }: AdmittedRequest): void {
    this.#cancelled.add(requestId, deadlineAtMs).catch((error: unknown) => {
      this.#log.debug({ requestId, err: error }, 'a queued request could not be cancelled');
    });
  }
}
