// decision 0004
import type { ServerResponse } from 'node:http';
import type { FinishDeps } from '../../../shared/work/settlement/finish-request.ts';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { isResponseStored, type AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { ChatJob, NewChatJob, StoredChat } from '../../../shared/work/queue/job-kinds.ts';
import { maxInlineBytes } from '../../../shared/work/queue/payload-limits.ts';
import type { PayloadStore } from '../../../shared/work/queue/payload-store.ts';
import { chooseLane, type Lane } from '../../../shared/work/queue/fair-share.ts';
import type { ReadyQueue } from '../../../shared/work/queue/ready-queue.ts';
import { checksUntilLost } from '../replies/find-lost-replies.ts';
import { FrameOrder } from '../replies/frame-order.ts';
import type { CancelCause } from '../../../shared/work/replies/worker-control.ts';
import { encodeWholeJson, isLongJson } from '../../../shared/encoding/json-pieces.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { release, releaseIfHeld, settleBroken } from './abandon-request.ts';
import type { BulkEntry, BulkShares } from './bulk-shares.ts';
import type { StoredResponses } from '../stored-responses/stored-responses.ts';
import type { Placement } from './placement.ts';
import { HeldReceiver } from '../replies/held-receiver.ts';
import type { PendingReplies } from '../replies/pending-replies.ts';
import type { Receiver, PendingReply, ReplyOwner } from '../replies/pending-reply.ts';

/** Maximum dispatches of one chat. A chat is dispatched again when its worker died before any output. */
const maxDispatches = 3;
/**
 * Maximum time from a chat's removal from the queue to its `accepted` frame. After that, the worker is considered dead.
 */
const acceptTimeoutMs = 3_000;
const takenCacheMs = 500;
/** If the reply to an admission is lost, the chat fails unless a worker accepts it within this time. */
const lostReplyTimeoutMs = 1_000;

interface PendingChat extends PendingReply {
  readonly job: ChatJob;
  readonly lane: Lane;
  ticket: number;
  takenSinceMs: number | null;
  /** Whether it is not known yet to be in its queue: it waits for a share, or Redis has not replied to the push. */
  isDispatching: boolean;
  /** Entry of a chat that waits for a share of the workers' bulk capacity; null if it does not wait. */
  entry: BulkEntry | null;
  position: number | null;
}

/** The endpoint's handle on a dispatched chat. */
export interface DispatchedChat {
  /** Position in the queue, 1 is next; null once a worker has accepted the chat. Never increases. */
  position(): number | null;
  pause(): void;
  resume(): void;
  /** Call when the client has disconnected, or for the reason in `cause`. */
  cancel(cause?: CancelCause): void;
}

/** A chat that is pushed in the step that admits it. */
export interface PlacedChat extends Placement {
  /** Call once it has been confirmed. */
  receive(receiver: Receiver): DispatchedChat;
}

const payloadId = ({ requestId }: AdmittedRequest, attempt: number): string => `${requestId}:${attempt}`;

/**
 * Dispatches interactive chats through the ready queue and owns their replies. If a worker dies before any output,
 * dispatches its chats again.
 */
export class ChatDispatcher implements ReplyOwner {
  readonly checksUntilLost = checksUntilLost;
  readonly #deps: FinishDeps;
  readonly #queues: Readonly<Record<Lane, ReadyQueue>>;
  readonly #shares: BulkShares;
  readonly #payloads: PayloadStore;
  readonly #replies: PendingReplies;
  readonly #storedResponses: StoredResponses;
  readonly #log: Logger;
  readonly #taken: Record<Lane, { count: number; atMs: number }> = {
    quick: { count: 0, atMs: 0 },
    bulk: { count: 0, atMs: 0 },
  };

  constructor(
    deps: FinishDeps,
    queues: Readonly<Record<Lane, ReadyQueue>>,
    shares: BulkShares,
    payloads: PayloadStore,
    replies: PendingReplies,
    storedResponses: StoredResponses,
    log: Logger,
  ) {
    this.#deps = deps;
    this.#queues = queues;
    this.#shares = shares;
    this.#payloads = payloads;
    this.#replies = replies;
    this.#storedResponses = storedResponses;
    this.#log = log;
  }

  /** Follows the response of an earlier chat with the same Idempotency-Key. */
  attach(request: Pick<AdmittedRequest, 'requestId' | 'accountId'>, receiver: Receiver): DispatchedChat {
    return this.#storedResponses.attachStream(request, receiver);
  }

  /** @throws AppError `queue_full` or `service_unavailable`, after releasing the reservation */
  async dispatch(job: NewChatJob, receiver: Receiver): Promise<DispatchedChat> {
    const { request } = job;
    if (!isResponseStored(request)) return await this.#dispatch(job, receiver);
    const owner = this.#storedResponses.createOwner(request);
    const owned = await this.#dispatch(job, owner).catch((error: unknown) => {
      // Other callers may have attached to this response since the request was admitted. They get the error too.
      owner.fail(toAppError(error));
      throw error;
    });
    return { ...this.attach(request, receiver), position: () => owned.position() };
  }

  /**
   * Prepares a chat to be pushed in the step that admits it. From now on, its reply is pending. Returns null if the chat
   * must be dispatched after its admission: in a Cluster, where the queue is on another node; if the chat is large; if
   * its account would have to wait for a share of the workers' bulk capacity; or if no reply could be received now.
   * @param response the caller's HTTP response
   * @throws AppError `service_unavailable` if there has been no worker for a while
   */
  place(job: NewChatJob, response: ServerResponse): PlacedChat | null {
    if (this.#deps.redis.isCluster || !this.#replies.isListening) return null;
    const held = new HeldReceiver(response);
    const pending = this.#createPending(job, held);
    const { request, lane } = pending;
    if (isLongJson(pending.job, maxInlineBytes)) return null;
    const item = JSON.stringify(pending.job);
    if (Buffer.byteLength(item) > maxInlineBytes) return null;
    if (lane === 'bulk') {
      const releaseShare = this.#shares.tryEnter('chat', request.accountId);
      if (releaseShare === null) return null;
      pending.onEnded = releaseShare;
    }
    try {
      this.#replies.add(pending, this);
    } catch (error) {
      pending.onEnded?.();
      throw error;
    }
    return {
      push: this.#queues[lane].describePush(item),
      confirm(ticket) {
        pending.ticket = ticket;
        pending.isDispatching = false;
      },
      withdraw: () => {
        this.#replies.remove(request.requestId);
      },
      confirmIfAccepted: async () => {
        const isAccepted = await waitUntilAccepted(pending, held);
        // The ticket is needed only until a worker has accepted the chat.
        if (isAccepted) pending.isDispatching = false;
        else {
          this.#replies.fail(pending, pushInterrupted(new AppError('service_unavailable'), request));
          releaseIfHeld(this.#deps, request, this.#log);
        }
        return isAccepted;
      },
      receive: (receiver) => {
        held.passTo(receiver);
        // After a ban, frames are only counted. The worker stops by itself, and must not take it for a disconnect.
        if (pending.receiver !== held) return endedChat;
        pending.receiver = receiver;
        return this.#handleOf(pending);
      },
    };
  }

  async #dispatch(job: NewChatJob, receiver: Receiver): Promise<DispatchedChat> {
    const { request } = job;
    const pending = this.#createPending(job, receiver);
    try {
      this.#replies.add(pending, this);
      if (pending.lane === 'quick') pending.ticket = await this.#push(pending.job, pending.lane);
    } catch (error) {
      this.#replies.remove(request.requestId);
      release(this.#deps, request, this.#log);
      throw error;
    }
    if (pending.lane === 'bulk')
      runInBackground(this.#pushOnceGranted(pending), 'dispatching a chat', this.#log);
    else pending.isDispatching = false;
    return this.#handleOf(pending);
  }

  #createPending(job: NewChatJob, receiver: Receiver): PendingChat {
    const { request } = job;
    return {
      request,
      queue: 'chat',
      receiver,
      job: { ...job, replyChannel: this.#replies.channel, attempt: 1 },
      lane: chooseLane(this.#replies.countOf('chat', request.accountId) + 1),
      order: new FrameOrder(1),
      workerId: null,
      hasOutput: false,
      tokens: 0,
      ticket: 0,
      takenSinceMs: null,
      isDispatching: true,
      entry: null,
      position: null,
    };
  }

  #handleOf(pending: PendingChat): DispatchedChat {
    return {
      position: () => (pending.workerId === null ? pending.position : null),
      pause: () => this.#replies.control(pending, 'pause'),
      resume: () => this.#replies.control(pending, 'resume'),
      cancel: (cause) => this.#cancel(pending, cause),
    };
  }

  check(pending: PendingChat, alive: ReadonlySet<string>): void {
    if (pending.entry !== null) reportPosition(pending, pending.entry.position());
    if (pending.isDispatching) return;
    if (pending.workerId !== null) {
      if (!alive.has(pending.workerId)) this.#recover(pending);
      return;
    }
    this.#checkQueued(pending).catch((error: unknown) =>
      this.#log.debug({ err: error }, 'ready queue read failed'),
    );
  }

  abandon(pending: PendingChat): void {
    if (pending.workerId === null) this.#payloads.drop(payloadId(pending.request, pending.order.attempt));
    if (pending.hasOutput)
      settleBroken(
        this.#deps,
        pending.request,
        pending.tokens,
        streamInterrupted(pending.request),
        this.#log,
      );
    else release(this.#deps, pending.request, this.#log);
  }

  mayRun(pending: PendingChat): boolean {
    // A chat that waits for a share is not on a queue.
    return pending.entry === null;
  }

  withdraw(pending: PendingChat): boolean {
    if (pending.isDispatching && pending.entry === null) return false;
    this.#cancel(pending);
    return true;
  }

  async #checkQueued(pending: PendingChat): Promise<void> {
    const now = Date.now();
    const taken = this.#taken[pending.lane];
    if (now - taken.atMs > takenCacheMs) {
      taken.atMs = now;
      taken.count = await this.#queues[pending.lane].countTaken();
    }
    const position = pending.ticket - taken.count;
    if (position > 0) {
      reportPosition(pending, position);
      return;
    }
    pending.takenSinceMs ??= now;
    if (pending.workerId === null && now - pending.takenSinceMs > acceptTimeoutMs) this.#recover(pending);
  }

  /** Handles a dead worker: dispatches again if there was no output, otherwise ends the stream with an error. */
  #recover(pending: PendingChat): void {
    const { request, workerId, order } = pending;
    const { requestId } = request;
    const { attempt } = order;
    if (pending.hasOutput || attempt >= maxDispatches) {
      this.#log.warn({ requestId, workerId, attempt }, 'worker of a chat died');
      this.abandon(pending);
      this.#replies.fail(pending, streamInterrupted(request));
      return;
    }
    this.#log.warn({ requestId, workerId, attempt }, 'chat dispatched again');
    order.restart(attempt + 1);
    pending.workerId = null;
    pending.takenSinceMs = null;
    pending.isDispatching = true;
    this.#push({ ...pending.job, attempt: order.attempt }, pending.lane)
      .then((ticket) => {
        pending.ticket = ticket;
        pending.isDispatching = false;
      })
      .catch((error: unknown) => {
        this.#failAfterPushError(pending, error);
      });
  }

  /** Waits until the account has a share of the workers' bulk capacity, then pushes the chat. Never rejects. */
  async #pushOnceGranted(pending: PendingChat): Promise<void> {
    const ended = new AbortController();
    pending.onEnded = () => ended.abort(requestEnded);
    pending.entry = this.#shares.enter('chat', pending.request, ended.signal);
    try {
      await pending.entry.granted;
      pending.entry = null;
      pending.ticket = await this.#push(pending.job, pending.lane);
      pending.isDispatching = false;
    } catch (error) {
      // If the request has already ended, its reservation has been released.
      if (!ended.signal.aborted) this.#failAfterPushError(pending, error);
    }
  }

  #failAfterPushError(pending: PendingChat, error: unknown): void {
    release(this.#deps, pending.request, this.#log);
    this.#replies.fail(pending, toAppError(error));
  }

  async #push(job: ChatJob, lane: Lane): Promise<number> {
    const queue = this.#queues[lane];
    const isLong = isLongJson(job, maxInlineBytes);
    const json = isLong ? await encodeWholeJson(job, job.request.accountId) : JSON.stringify(job);
    if (typeof json === 'string' && Buffer.byteLength(json) <= maxInlineBytes)
      return await pushTo(queue, json, job.request);
    const id = payloadId(job.request, job.attempt);
    const payload = typeof json === 'string' ? Buffer.from(json) : json;
    await this.#payloads.put(id, payload, job.request.deadlineAtMs);
    try {
      const { request, replyChannel, attempt } = job;
      const stored = { v: 1, stored: id, bytes: payload.length, replyChannel } as const;
      const item: StoredChat = { ...stored, requests: [request], attempt };
      return await pushTo(queue, JSON.stringify(item), request);
    } catch (error) {
      this.#payloads.drop(payloadId(job.request, job.attempt));
      throw error;
    }
  }

  #cancel(pending: PendingChat, cause?: CancelCause): void {
    const { requestId } = pending.request;
    if (pending.entry !== null) {
      if (this.#replies.remove(requestId)) release(this.#deps, pending.request, this.#log);
      return;
    }
    if (!this.#replies.markDisconnected(requestId)) return;
    if (pending.workerId !== null) {
      this.#replies.control(pending, 'cancel', cause);
      return;
    }
    // If a worker takes the chat from the queue before it is removed, there is no pending reply for the worker's
    // `accepted` frame, and the worker is sent a cancel.
    this.#queues[pending.lane]
      .cancel(pending.ticket)
      .then((removed) => {
        if (!removed) return;
        this.#replies.endDisconnected(requestId);
        release(this.#deps, pending.request, this.#log);
        this.#payloads.drop(payloadId(pending.request, pending.order.attempt));
      })
      .catch((error: unknown) => this.#log.debug({ err: error }, 'cancellation of a queued chat failed'));
  }
}

/** Shared, because creating an error for each request would capture a stack that nobody reads. */
const requestEnded = new AppError('job_cancelled');

const endedChat: DispatchedChat = {
  position: () => null,
  pause: () => undefined,
  resume: () => undefined,
  cancel: () => undefined,
};

/** Resolves to whether a worker has accepted the chat; false once the chat has failed, or after a timeout. */
function waitUntilAccepted(pending: PendingChat, held: HeldReceiver): Promise<boolean> {
  if (pending.workerId !== null || held.hasFailed) return Promise.resolve(pending.workerId !== null);
  return new Promise((resolve) => {
    const settle = (isAccepted: boolean): void => {
      clearTimeout(timer);
      resolve(isAccepted);
    };
    const timer = setTimeout(settle, lostReplyTimeoutMs, false);
    pending.onAccepted = () => settle(true);
    held.onFailed = () => settle(false);
  });
}

/** Updates the reported position, which never increases. */
function reportPosition(pending: PendingChat, position: number): void {
  pending.position = Math.min(position, pending.position ?? position);
}

/** @throws AppError which says that the chat may be charged if Redis did not reply */
async function pushTo(queue: ReadyQueue, item: string, request: AdmittedRequest): Promise<number> {
  try {
    return await queue.push(item);
  } catch (error) {
    throw pushInterrupted(toAppError(error), request);
  }
}

/** If Redis did not reply to the push, a worker may have taken the chat. */
const pushInterrupted = (error: AppError, { requestId }: AdmittedRequest): AppError =>
  error.code === 'service_unavailable' ? error.asPossiblyCharged(requestId) : error;

const streamInterrupted = ({ requestId }: AdmittedRequest): AppError =>
  new AppError('upstream_error', {
    possiblyChargedId: requestId,
    message:
      'The response was interrupted by an error on our side. Only the output generated so far is charged.',
  });
