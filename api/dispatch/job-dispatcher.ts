import type { ServerResponse } from 'node:http';
import type { FinishDeps } from '../../shared/settlement/finish-request.ts';
import type { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { CancelledStore } from '../../shared/queue/cancelled-store.ts';
import { isResponseStored, type AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import type { QueueName } from '../../shared/queue/job-kinds.ts';
import { FrameOrder } from '../replies/frame-order.ts';
import type { CancelCause } from '../../shared/reply/worker-control.ts';
import type { PooledBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { release } from './abandon-request.ts';
import type { FollowedResponse, ReaderOptions } from '../stored-responses/stored-response-reader.ts';
import type { StoredResponses, StreamedResponse } from '../stored-responses/stored-responses.ts';
import type { PendingReplies } from '../replies/pending-replies.ts';
import type { Receiver, PendingReply, ReplyOwner } from '../replies/pending-reply.ts';
import { receiveWhole } from '../replies/receive-whole.ts';

interface PendingJob extends PendingReply {
  /** Whether a worker may find it on its queue. */
  isQueued: boolean;
  onLeft: () => void;
}

/** A request whose job is on a BullMQ queue. */
export interface QueuedJob {
  /** Calls back once no work for the request is left, even if its caller disconnected earlier. */
  whenEnded(callback: () => void): void;
  /** Calls back when the caller disconnects while the job is queued or running. */
  whenLeft(callback: () => void): void;
  /** Call just before enqueueing: from then on a worker releases the reservation. @returns false if the request has ended */
  markQueued(): boolean;
  /**
   * Call when the client has disconnected. `cause` gives any other reason. An awaited answer rejects with `job_cancelled`.
   */
  cancel(cause?: CancelCause): void;
  /** Call when the job could not be enqueued. */
  fail(error: AppError): void;
}

export interface AwaitedJob extends QueuedJob {
  readonly answer: Promise<PooledBuffer>;
}

/** A job whose response is streamed to a receiver. */
export type StreamedJob = StreamedResponse;

/**
 * The length of an embedding response is known up front. Its memory is acquired before dispatch, without a response
 * object.
 */
const readerOptions = (response: ServerResponse | undefined, succeededAttempt?: number): ReaderOptions => ({
  hasMemory: response === undefined,
  succeededAttempt,
});

/** A job that waits for a worker has no process to send its heartbeat. Hold its reservation this long past its deadline. */
const deadlineSlackMs = 60_000;

/**
 * Waits for the results of image and embedding requests, whose jobs are on BullMQ queues. BullMQ reruns a job whose worker
 * dies, so waiting just continues.
 */
export class JobDispatcher implements ReplyOwner {
  readonly #dependencies: FinishDeps;
  readonly #waiters: PendingReplies;
  readonly #kept: StoredResponses;
  readonly #reservations: ReservationStore;
  readonly #cancelled: CancelledStore;
  readonly #log: Logger;

  constructor(
    dependencies: FinishDeps,
    waiters: PendingReplies,
    kept: StoredResponses,
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

  /** Number of an account's requests that are queued or running on a BullMQ queue. */
  countOf(queue: QueueName, accountId: string): number {
    return this.#waiters.countOf(queue, accountId);
  }

  /** @param response the HTTP response to acquire memory for once the result is available */
  await(request: AdmittedRequest, queue: QueueName, response?: ServerResponse): AwaitedJob {
    const { receiver, answer } = receiveWhole(response);
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

  /** Streams the response to the receiver. */
  stream(request: AdmittedRequest, queue: QueueName, receiver: Receiver): QueuedJob & StreamedJob {
    const { job, waiter, reader } = this.#start(request, queue, receiver);
    const controls: Pick<FollowedResponse, 'pause' | 'resume'> = reader ?? {
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
  ): { job: QueuedJob; waiter: PendingJob; reader: FollowedResponse | null } {
    const hasStoredResponse = isResponseStored(request);
    const callbacks: (() => void)[] = [];
    let hasEnded = false;
    const waiter: PendingJob = {
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
      receiver: hasStoredResponse ? this.#kept.createOwner(request) : receiver,
    };
    try {
      this.#waiters.add(waiter, this);
    } catch (error) {
      release(this.#dependencies, request, this.#log);
      if (hasStoredResponse) waiter.receiver.fail(new AppError('service_unavailable', { cause: error }));
      throw error;
    }
    if (hasStoredResponse) this.#holdThroughQueue(request);
    const reader = hasStoredResponse
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
   * Follows the response of a durable job, or of an earlier request with the same Idempotency-Key.
   * @param response the HTTP response to acquire memory for once the result is available
   * @param succeededAttempt the final attempt of a durable job that is known to have succeeded
   */
  attach(
    request: Pick<AdmittedRequest, 'requestId' | 'accountId'>,
    response?: ServerResponse,
    succeededAttempt?: number,
  ): Pick<AwaitedJob, 'answer' | 'cancel'> {
    const { receiver, answer } = receiveWhole(response);
    const reader = this.#kept.follow(request, receiver, readerOptions(response, succeededAttempt));
    return {
      answer,
      cancel: () => {
        reader.cancel();
        receiver.fail(new AppError('job_cancelled'));
      },
    };
  }

  /** As `attach`, for a streamed request. */
  attachStream(request: Pick<AdmittedRequest, 'requestId' | 'accountId'>, receiver: Receiver): StreamedJob {
    return this.#kept.attachStream(request, receiver);
  }

  check(): void {
    // BullMQ detects a dead worker by its expired lock and gives the job to another.
  }

  abandon(waiter: PendingJob): void {
    this.#release(waiter);
  }

  /** The job may be on its queue even so. Mark it cancelled, so that a worker does not run it without a reservation. */
  #release({ request, isQueued }: PendingJob): void {
    release(this.#dependencies, request, this.#log);
    if (isQueued) this.#markCancelled(request);
  }

  withdraw(waiter: PendingJob): boolean {
    this.#cancel(waiter);
    return true;
  }

  #holdThroughQueue(request: AdmittedRequest): void {
    const forMs = request.deadlineAtMs - Date.now() + deadlineSlackMs;
    this.#reservations.hold([request], forMs).catch((error: unknown) => {
      this.#log.debug({ requestId: request.requestId, err: error }, 'a heartbeat of requests failed');
    });
  }

  /** Tells the worker that has the request immediately. A worker that takes it later finds the cancellation mark. */
  #cancel(waiter: PendingJob, cause?: CancelCause): void {
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
