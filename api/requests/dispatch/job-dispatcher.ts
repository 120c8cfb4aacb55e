import type { ServerResponse } from 'node:http';
import type { FinishDeps } from '../../../shared/work/settlement/finish-request.ts';
import type { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { CancelledStore } from '../../../shared/work/queue/cancelled-store.ts';
import { isResponseStored, type AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import { checksUntilRerunIsLost } from '../replies/find-lost-replies.ts';
import { FrameOrder } from '../replies/frame-order.ts';
import type { CancelCause } from '../../../shared/work/replies/worker-control.ts';
import type { PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { release } from './abandon-request.ts';
import type { FollowedResponse, ReaderOptions } from '../stored-responses/stored-response-reader.ts';
import type { StoredResponses, StreamedResponse } from '../stored-responses/stored-responses.ts';
import type { PendingReplies } from '../replies/pending-replies.ts';
import type { Receiver, PendingReply, ReplyOwner } from '../replies/pending-reply.ts';
import { receiveWhole } from '../replies/receive-whole.ts';

interface PendingJob extends PendingReply {
  /** Whether it may be on its queue. */
  isQueued: boolean;
  onDisconnected: () => void;
}

/** A request whose job is on a BullMQ queue. */
export interface DispatchedJob {
  /** Calls back when no work for the request remains, even if its caller disconnected earlier. */
  whenEnded(callback: () => void): void;
  /** Calls back when the caller disconnects while the job is queued or running. */
  whenDisconnected(callback: () => void): void;
  /**
   * Call just before enqueueing. From then on, a worker is responsible for releasing the reservation.
   * @returns false if the request has ended
   */
  markQueued(): boolean;
  /**
   * Call when the client has disconnected, or for the reason in `cause`. An awaited response rejects with
   * `job_cancelled`.
   */
  cancel(cause?: CancelCause): void;
  /** Call when the job could not be enqueued. */
  fail(error: AppError): void;
}

export interface AwaitedJob extends DispatchedJob {
  readonly answer: Promise<PooledBuffer>;
}

/** A job whose response is streamed to a receiver. */
export type StreamedJob = StreamedResponse;

/**
 * Without an HTTP response, the request is for embeddings: their response length is known in advance, so its memory was
 * acquired before dispatch.
 */
const readerOptions = (response: ServerResponse | undefined, succeededAttempt?: number): ReaderOptions => ({
  hasMemory: response === undefined,
  succeededAttempt,
});

/**
 * How long a queued job's reservation lasts beyond the job's deadline. It is extended this far at once, because no
 * process sends heartbeats for a job that waits for a worker.
 */
const deadlineSlackMs = 60_000;

/**
 * Waits for the results of image and embedding requests, whose jobs are on BullMQ queues. If a worker dies, BullMQ runs
 * its jobs again, so nothing needs to be done here.
 */
export class JobDispatcher implements ReplyOwner {
  readonly checksUntilLost = checksUntilRerunIsLost;
  readonly #deps: FinishDeps;
  readonly #replies: PendingReplies;
  readonly #storedResponses: StoredResponses;
  readonly #reservations: ReservationStore;
  readonly #cancelled: CancelledStore;
  readonly #log: Logger;

  constructor(
    deps: FinishDeps,
    replies: PendingReplies,
    storedResponses: StoredResponses,
    reservations: ReservationStore,
    log: Logger,
  ) {
    this.#deps = deps;
    this.#replies = replies;
    this.#storedResponses = storedResponses;
    this.#reservations = reservations;
    this.#cancelled = new CancelledStore(deps.redis);
    this.#log = log;
  }

  get replyChannel(): string {
    return this.#replies.channel;
  }

  /** Number of an account's requests that are waiting on this queue or being run by its workers. */
  countOf(queue: QueueName, accountId: string): number {
    return this.#replies.countOf(queue, accountId);
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
  stream(request: AdmittedRequest, queue: QueueName, receiver: Receiver): DispatchedJob & StreamedJob {
    const { job, pending, reader } = this.#start(request, queue, receiver);
    const controls: Pick<FollowedResponse, 'pause' | 'resume'> = reader ?? {
      pause: () => this.#replies.control(pending, 'pause'),
      resume: () => this.#replies.control(pending, 'resume'),
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
  ): { job: DispatchedJob; pending: PendingJob; reader: FollowedResponse | null } {
    const hasStoredResponse = isResponseStored(request);
    const callbacks: (() => void)[] = [];
    let hasEnded = false;
    const pending: PendingJob = {
      request,
      queue,
      order: new FrameOrder(),
      workerId: null,
      hasOutput: false,
      tokens: 0,
      isQueued: false,
      onDisconnected: () => undefined,
      onEnded: () => {
        hasEnded = true;
        for (const callback of callbacks) callback();
      },
      receiver: hasStoredResponse ? this.#storedResponses.createOwner(request) : receiver,
    };
    try {
      this.#replies.add(pending, this);
    } catch (error) {
      release(this.#deps, request, this.#log);
      if (hasStoredResponse) pending.receiver.fail(new AppError('service_unavailable', { cause: error }));
      throw error;
    }
    if (hasStoredResponse) this.#extendReservation(request);
    const reader = hasStoredResponse
      ? this.#storedResponses.follow(request, receiver, readerOptions(receiver.response))
      : null;
    const job: DispatchedJob = {
      whenEnded: (callback) => {
        if (hasEnded) callback();
        else callbacks.push(callback);
      },
      whenDisconnected: (callback) => {
        pending.onDisconnected = callback;
      },
      markQueued: () => {
        pending.isQueued = true;
        return !hasEnded;
      },
      cancel: (cause) => {
        if (reader !== null) reader.cancel();
        else this.#cancel(pending, cause);
      },
      fail: (error) => {
        this.#release(pending);
        // If Redis did not reply, the job may be on its queue.
        const mayRun = pending.isQueued && error.code === 'service_unavailable';
        this.#replies.fail(pending, mayRun ? error.asPossiblyCharged(request.requestId) : error);
        this.#replies.endDisconnected(request.requestId);
      },
    };
    return { job, pending, reader };
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
    const reader = this.#storedResponses.follow(request, receiver, readerOptions(response, succeededAttempt));
    return {
      answer,
      cancel: () => {
        reader.cancel();
        receiver.fail(new AppError('job_cancelled'));
      },
    };
  }

  /** Like `attach`, for a streamed request. */
  attachStream(request: Pick<AdmittedRequest, 'requestId' | 'accountId'>, receiver: Receiver): StreamedJob {
    return this.#storedResponses.attachStream(request, receiver);
  }

  check(): void {
    // BullMQ detects a dead worker by its expired lock and gives the job to another worker.
  }

  abandon(pending: PendingJob): void {
    this.#release(pending);
  }

  /**
   * Releases the reservation. If the job is on its queue, marks it cancelled, so that no worker runs it without a
   * reservation.
   */
  #release({ request, isQueued }: PendingJob): void {
    release(this.#deps, request, this.#log);
    if (isQueued) this.#markCancelled(request);
  }

  mayRun({ isQueued }: PendingJob): boolean {
    return isQueued;
  }

  withdraw(pending: PendingJob): boolean {
    this.#cancel(pending);
    return true;
  }

  #extendReservation(request: AdmittedRequest): void {
    const forMs = request.deadlineAtMs - Date.now() + deadlineSlackMs;
    this.#reservations.sendHeartbeat([request], forMs).catch((error: unknown) => {
      this.#log.debug({ requestId: request.requestId, err: error }, 'request heartbeat failed');
    });
  }

  /**
   * Notifies the worker that runs the request. If no worker has taken the job yet, the one that takes it finds the
   * cancellation mark.
   */
  #cancel(pending: PendingJob, cause?: CancelCause): void {
    const { requestId } = pending.request;
    if (!pending.isQueued) {
      if (this.#replies.remove(requestId)) release(this.#deps, pending.request, this.#log);
      return;
    }
    this.#replies.markDisconnected(requestId);
    pending.onDisconnected();
    if (pending.workerId !== null) {
      this.#replies.control(pending, 'cancel', cause);
      return;
    }
    this.#markCancelled(pending.request);
  }

  #markCancelled({ requestId, deadlineAtMs }: AdmittedRequest): void {
    this.#cancelled.add(requestId, deadlineAtMs).catch((error: unknown) => {
      this.#log.debug({ requestId, err: error }, 'cancellation of a queued request failed');
    });
  }
}
