import type { FinishDeps } from '../../shared/settlement/finish-request.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { isResponseStored, type AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import type { ChatJob, StoredChat } from '../../shared/queue/job-kinds.ts';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import type { PayloadStore } from '../../shared/queue/payload-store.ts';
import { chooseLane, type Lane } from '../../shared/queue/fair-share.ts';
import type { ReadyQueue } from '../../shared/queue/ready-queue.ts';
import { FrameOrder } from '../replies/frame-order.ts';
import type { CancelCause } from '../../shared/reply/worker-control.ts';
import { encodeLargeJson, isLongJson } from '../../shared/encoding/json-pieces.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { release, settleBroken } from './abandon-request.ts';
import type { BulkEntry, BulkShares } from './bulk-shares.ts';
import type { StoredResponses } from '../stored-responses/stored-responses.ts';
import type { PendingReplies } from '../replies/pending-replies.ts';
import type { Receiver, PendingReply, ReplyOwner } from '../replies/pending-reply.ts';

/** Maximum dispatches of one chat. A chat is dispatched again when its worker died before any output. */
const maxDispatches = 3;
/** Maximum time between leaving the queue and the `accepted` frame. After that the worker is taken for dead. */
const acceptTimeoutMs = 3_000;
const takenCacheMs = 500;

interface PendingChat extends PendingReply {
  readonly job: ChatJob;
  readonly lane: Lane;
  ticket: number;
  takenSinceMs: number | null;
  /** Being pushed to its queue. */
  dispatching: boolean;
  /** Waits for a share of the workers' runs; null if it has gone to the workers or goes to them directly. */
  entry: BulkEntry | null;
  position: number | null;
}

/** A chat that has not been dispatched yet. */
export type NewChatJob = Omit<ChatJob, 'attempt' | 'replyChannel'>;

/** The endpoint's handle on a dispatched chat. */
export interface DispatchedChat {
  /** Position in the queue, 1 is next; null once a worker has it. Never increases. */
  position(): number | null;
  pause(): void;
  resume(): void;
  /** Call when the client has disconnected. `cause` gives any other reason. */
  cancel(cause?: CancelCause): void;
}

const payloadId = ({ requestId }: AdmittedRequest, attempt: number): string => `${requestId}:${attempt}`;

/** Sends interactive chats through the ready queue and owns them: dispatches a chat again when its worker dies. */
export class ChatDispatcher implements ReplyOwner {
  readonly #dependencies: FinishDeps;
  readonly #queues: Readonly<Record<Lane, ReadyQueue>>;
  readonly #shares: BulkShares;
  readonly #payloads: PayloadStore;
  readonly #waiters: PendingReplies;
  readonly #kept: StoredResponses;
  readonly #log: Logger;
  readonly #taken: Record<Lane, { count: number; atMs: number }> = {
    quick: { count: 0, atMs: 0 },
    bulk: { count: 0, atMs: 0 },
  };

  constructor(
    dependencies: FinishDeps,
    queues: Readonly<Record<Lane, ReadyQueue>>,
    shares: BulkShares,
    payloads: PayloadStore,
    waiters: PendingReplies,
    kept: StoredResponses,
    log: Logger,
  ) {
    this.#dependencies = dependencies;
    this.#queues = queues;
    this.#shares = shares;
    this.#payloads = payloads;
    this.#waiters = waiters;
    this.#kept = kept;
    this.#log = log;
  }

  /** Follows the response of an earlier chat with the same Idempotency-Key. */
  attach(request: Pick<AdmittedRequest, 'requestId' | 'accountId'>, receiver: Receiver): DispatchedChat {
    return this.#kept.attachStream(request, receiver);
  }

  /** @throws AppError `queue_full` or `service_unavailable`, after releasing the reservation */
  async dispatch(job: NewChatJob, receiver: Receiver): Promise<DispatchedChat> {
    const { request } = job;
    if (!isResponseStored(request)) return await this.#dispatch(job, receiver);
    const owner = this.#kept.createOwner(request);
    const owned = await this.#dispatch(job, owner).catch((error: unknown) => {
      // Other callers may have attached since the request was admitted.
      owner.fail(toAppError(error));
      throw error;
    });
    return { ...this.attach(request, receiver), position: () => owned.position() };
  }

  async #dispatch(job: NewChatJob, receiver: Receiver): Promise<DispatchedChat> {
    const { request } = job;
    const waiter: PendingChat = {
      request,
      queue: 'chat',
      receiver,
      job: { ...job, replyChannel: this.#waiters.channel, attempt: 1 },
      lane: chooseLane(this.#waiters.countOf('chat', request.accountId) + 1),
      order: new FrameOrder(1),
      workerId: null,
      hasOutput: false,
      tokens: 0,
      ticket: 0,
      takenSinceMs: null,
      dispatching: true,
      entry: null,
      position: null,
    };
    try {
      this.#waiters.add(waiter, this);
      if (waiter.lane === 'quick') waiter.ticket = await this.#push(waiter.job, waiter.lane);
    } catch (error) {
      this.#waiters.remove(request.requestId);
      release(this.#dependencies, request, this.#log);
      throw error;
    }
    if (waiter.lane === 'bulk') runInBackground(this.#pushInTurn(waiter), 'dispatching a chat', this.#log);
    else waiter.dispatching = false;
    return {
      position: () => (waiter.workerId === null ? waiter.position : null),
      pause: () => this.#waiters.control(waiter, 'pause'),
      resume: () => this.#waiters.control(waiter, 'resume'),
      cancel: (cause) => this.#cancel(waiter, cause),
    };
  }

  check(waiter: PendingChat, alive: ReadonlySet<string>): void {
    if (waiter.entry !== null) toldAs(waiter, waiter.entry.place());
    if (waiter.dispatching) return;
    if (waiter.workerId !== null) {
      if (!alive.has(waiter.workerId)) this.#recover(waiter);
      return;
    }
    this.#checkQueued(waiter).catch((error: unknown) =>
      this.#log.debug({ err: error }, 'the ready queue could not be read'),
    );
  }

  abandon(waiter: PendingChat): void {
    if (waiter.workerId === null) this.#payloads.drop(payloadId(waiter.request, waiter.order.attempt));
    if (waiter.hasOutput)
      settleBroken(this.#dependencies, waiter.request, waiter.tokens, brokenOff(), this.#log);
    else release(this.#dependencies, waiter.request, this.#log);
  }

  withdraw(waiter: PendingChat): boolean {
    if (waiter.dispatching && waiter.entry === null) return false;
    this.#cancel(waiter);
    return true;
  }

  async #checkQueued(waiter: PendingChat): Promise<void> {
    const now = Date.now();
    const taken = this.#taken[waiter.lane];
    if (now - taken.atMs > takenCacheMs) {
      taken.atMs = now;
      taken.count = await this.#queues[waiter.lane].countTaken();
    }
    const position = waiter.ticket - taken.count;
    if (position > 0) {
      toldAs(waiter, position);
      return;
    }
    waiter.takenSinceMs ??= now;
    if (waiter.workerId === null && now - waiter.takenSinceMs > acceptTimeoutMs) this.#recover(waiter);
  }

  /** Handles a dead worker: dispatches again if there was no output, otherwise ends the stream with an error. */
  #recover(waiter: PendingChat): void {
    const { request, workerId, order } = waiter;
    const { requestId } = request;
    const { attempt } = order;
    if (waiter.hasOutput || attempt >= maxDispatches) {
      this.#log.warn({ requestId, workerId, attempt }, 'the worker of a chat died');
      this.abandon(waiter);
      this.#waiters.fail(waiter, brokenOff());
      return;
    }
    this.#log.warn({ requestId, workerId, attempt }, 'a chat is dispatched again');
    order.restart(attempt + 1);
    waiter.workerId = null;
    waiter.takenSinceMs = null;
    waiter.dispatching = true;
    this.#push({ ...waiter.job, attempt: order.attempt }, waiter.lane)
      .then((ticket) => {
        waiter.ticket = ticket;
        waiter.dispatching = false;
      })
      .catch((error: unknown) => {
        this.#failToPush(waiter, error);
      });
  }

  /** Waits until the account has a share of the workers' runs, then pushes the chat. Never rejects. */
  async #pushInTurn(waiter: PendingChat): Promise<void> {
    const ended = new AbortController();
    waiter.onEnded = () => ended.abort();
    waiter.entry = this.#shares.enter('chat', waiter.request, ended.signal);
    try {
      await waiter.entry.granted;
      waiter.entry = null;
      waiter.ticket = await this.#push(waiter.job, waiter.lane);
      waiter.dispatching = false;
    } catch (error) {
      // If the request ended before, its reservation has been released already.
      if (!ended.signal.aborted) this.#failToPush(waiter, error);
    }
  }

  #failToPush(waiter: PendingChat, error: unknown): void {
    release(this.#dependencies, waiter.request, this.#log);
    this.#waiters.fail(waiter, toAppError(error));
  }

  async #push(job: ChatJob, lane: Lane): Promise<number> {
    const queue = this.#queues[lane];
    const isLong = isLongJson(job, maxInlineBytes);
    const json = isLong ? await encodeLargeJson(job, job.request.accountId) : JSON.stringify(job);
    if (typeof json === 'string' && Buffer.byteLength(json) <= maxInlineBytes) return await queue.push(json);
    const id = payloadId(job.request, job.attempt);
    const payload = typeof json === 'string' ? Buffer.from(json) : json;
    await this.#payloads.put(id, payload, job.request.deadlineAtMs);
    try {
      const { request, replyChannel, attempt } = job;
      const stored = { v: 1, stored: id, bytes: payload.length, replyChannel } as const;
      const item: StoredChat = { ...stored, requests: [request], attempt };
      return await queue.push(JSON.stringify(item));
    } catch (error) {
      this.#payloads.drop(payloadId(job.request, job.attempt));
      throw error;
    }
  }

  #cancel(waiter: PendingChat, cause?: CancelCause): void {
    const { requestId } = waiter.request;
    if (waiter.entry !== null) {
      if (this.#waiters.remove(requestId)) release(this.#dependencies, waiter.request, this.#log);
      return;
    }
    if (!this.#waiters.leave(requestId)) return;
    if (waiter.workerId !== null) {
      this.#waiters.control(waiter, 'cancel', cause);
      return;
    }
    // If a worker takes it at this moment, its `accepted` frame finds no pending reply and is answered with a cancel.
    this.#queues[waiter.lane]
      .cancel(waiter.ticket)
      .then((removed) => {
        if (!removed) return;
        this.#waiters.endLeft(requestId);
        release(this.#dependencies, waiter.request, this.#log);
        this.#payloads.drop(payloadId(waiter.request, waiter.order.attempt));
      })
      .catch((error: unknown) => this.#log.debug({ err: error }, 'a queued chat could not be cancelled'));
  }
}

/** Keeps the reported position from increasing. */
function toldAs(waiter: PendingChat, position: number): void {
  waiter.position = Math.min(position, waiter.position ?? position);
}

const brokenOff = (): AppError =>
  new AppError('upstream_error', {
    message:
      'The answer broke off on our side. What came of it is charged, and no more. Send the request again.',
  });
