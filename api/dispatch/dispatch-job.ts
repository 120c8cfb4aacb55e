import type { ServerResponse } from 'node:http';
import type { FinishDependencies } from '../../shared/billing/finish-request.ts';
import type { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest, QueueName } from '../../shared/queue/job-kinds.ts';
import { CancelledStore } from '../../shared/queue/cancelled-store.ts';
import { FrameOrder } from '../../shared/reply/frame-order.ts';
import type { LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { release } from './abandon-request.ts';
import type { ReaderOptions } from './kept-answer-reader.ts';
import type { KeptAnswers } from './kept-answers.ts';
import type { ReplyWaiters } from './reply-waiters.ts';
import type { Receiver, Waiter, WaiterOwner } from './waiter.ts';

interface JobWaiter extends Waiter {
  /** Whether a worker may find it on its queue. */
  isQueued: boolean;
  onLeft: () => void;
}

/** A request whose job is on one of BullMQ's queues, and whose whole answer is awaited. */
export interface AwaitedJob {
  readonly answer: Promise<LentBuffer>;
  /** Calls back once nothing is done for the request any more: its caller may have left before. */
  whenEnded(callback: () => void): void;
  /** Calls back when its caller leaves while it lies on its queue, or runs. */
  whenLeft(callback: () => void): void;
  /** It is about to lie on its queue: from now on a worker releases what it holds. @returns false where it has ended */
  markQueued(): boolean;
  /** The caller has gone. */
  cancel(): void;
  /** The job never came to lie on its queue. */
  fail(error: AppError): void;
}

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
    const isKept = request.claimHash !== null;
    const { receiver, answer } = this.#receive(response);
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
      receiver: isKept ? this.#kept.createOwner(request) : receiver,
    };
    try {
      this.#waiters.add(waiter, this);
    } catch (error) {
      release(this.#dependencies, request, this.#log);
      if (isKept) waiter.receiver.fail(new AppError('service_unavailable', { cause: error }));
      throw error;
    }
    if (isKept) this.#holdThroughQueue(request);
    const reader = isKept ? this.#kept.follow(request, receiver, readerOptions(response)) : null;
    return {
      answer,
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
      cancel: () => {
        if (reader !== null) reader.cancel();
        else this.#cancel(waiter);
        receiver.fail(new AppError('job_cancelled'));
      },
      fail: (error) => {
        release(this.#dependencies, request, this.#log);
        this.#waiters.fail(waiter, error);
        this.#waiters.endLeft(request.requestId);
      },
    };
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

  check(): void {
    // BullMQ notices a dead worker by its lock and gives the job to another.
  }

  abandon({ request }: Waiter): void {
    release(this.#dependencies, request, this.#log);
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
  #cancel(waiter: JobWaiter): void {
    const { requestId } = waiter.request;
    if (!waiter.isQueued) {
      if (this.#waiters.remove(requestId)) release(this.#dependencies, waiter.request, this.#log);
      return;
    }
    this.#waiters.leave(requestId);
    waiter.onLeft();
    if (waiter.workerId !== null) {
      this.#waiters.control(waiter, 'cancel');
      return;
    }
    this.#cancelled.add(requestId).catch((error: unknown) => {
      this.#log.debug({ requestId, err: error }, 'a queued request could not be cancelled');
    });
  }
}
