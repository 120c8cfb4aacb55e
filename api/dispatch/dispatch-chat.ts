import type { FinishDependencies } from '../../shared/billing/finish-request.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { isKept, type AdmittedRequest, type ChatJob, type StoredChat } from '../../shared/queue/job-kinds.ts';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import type { PayloadStore } from '../../shared/queue/payload-store.ts';
import { chooseLane, type Lane } from '../../shared/queue/fair-share.ts';
import type { ReadyQueue } from '../../shared/queue/ready-queue.ts';
import { FrameOrder } from '../../shared/reply/frame-order.ts';
import type { CancelCause } from '../../shared/reply/reply-channel.ts';
import { encodeLargeJson, isLongJson } from '../../shared/runtime/json-pieces.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { release, settleBroken } from './abandon-request.ts';
import type { BulkEntry, BulkShares } from './bulk-shares.ts';
import type { KeptAnswers } from './kept-answers.ts';
import type { ReplyWaiters } from './reply-waiters.ts';
import type { Receiver, Waiter, WaiterOwner } from './waiter.ts';

/** How often a chat may be dispatched before its owner gives up: each time its worker died before any output. */
const maxDispatches = 3;
/** Between being taken off the queue and the `accepted` frame; more means that its worker died in between. */
const acceptPatienceMs = 3_000;
const takenCacheMs = 500;

interface ChatWaiter extends Waiter {
  readonly job: ChatJob;
  readonly lane: Lane;
  ticket: number;
  takenSinceMs: number | null;
  /** On its way to its queue. */
  dispatching: boolean;
  /** Waits for a share of the workers' runs; null where it has gone to the workers, or goes there at once. */
  entry: BulkEntry | null;
  position: number | null;
}

/** A chat that is not dispatched yet. */
export type NewChatJob = Omit<ChatJob, 'attempt' | 'replyChannel'>;

/** A dispatched chat, as its endpoint holds it. */
export interface DispatchedChat {
  /** Its place in the queue, 1 the next; null once a worker has it. Never rises. */
  position(): number | null;
  pause(): void;
  resume(): void;
  /** The caller has gone: by its own choice, unless the cause says otherwise. */
  cancel(cause?: CancelCause): void;
}

const payloadId = ({ requestId }: AdmittedRequest, attempt: number): string => `${requestId}:${attempt}`;

/** Sends interactive chats through the ready queue, and owns them: what a dying worker drops is dispatched again. */
export class ChatDispatcher implements WaiterOwner {
  readonly #dependencies: FinishDependencies;
  readonly #queues: Readonly<Record<Lane, ReadyQueue>>;
  readonly #shares: BulkShares;
  readonly #payloads: PayloadStore;
  readonly #waiters: ReplyWaiters;
  readonly #kept: KeptAnswers;
  readonly #log: Logger;
  readonly #taken: Record<Lane, { count: number; atMs: number }> = {
    quick: { count: 0, atMs: 0 },
    bulk: { count: 0, atMs: 0 },
  };

  constructor(
    dependencies: FinishDependencies,
    queues: Readonly<Record<Lane, ReadyQueue>>,
    shares: BulkShares,
    payloads: PayloadStore,
    waiters: ReplyWaiters,
    kept: KeptAnswers,
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

  /** The answer of a chat that was sent before, under the same Idempotency-Key. */
  attach(request: Pick<AdmittedRequest, 'requestId' | 'accountId'>, receiver: Receiver): DispatchedChat {
    return this.#kept.attachStream(request, receiver);
  }

  /** @throws AppError `queue_full` or `service_unavailable`; the reservation is released then */
  async dispatch(job: NewChatJob, receiver: Receiver): Promise<DispatchedChat> {
    const { request } = job;
    if (!isKept(request)) return await this.#dispatch(job, receiver);
    const owner = this.#kept.createOwner(request);
    const owned = await this.#dispatch(job, owner).catch((error: unknown) => {
      // Others may have attached since it was admitted.
      owner.fail(toAppError(error));
      throw error;
    });
    return { ...this.attach(request, receiver), position: () => owned.position() };
  }

  async #dispatch(job: NewChatJob, receiver: Receiver): Promise<DispatchedChat> {
    const { request } = job;
    const waiter: ChatWaiter = {
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

  check(waiter: ChatWaiter, alive: ReadonlySet<string>): void {
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

  abandon(waiter: ChatWaiter): void {
    if (waiter.workerId === null) this.#drop(waiter.request, waiter.order.attempt);
    if (waiter.hasOutput)
      settleBroken(this.#dependencies, waiter.request, waiter.tokens, brokenOff(), this.#log);
    else release(this.#dependencies, waiter.request, this.#log);
  }

  withdraw(waiter: ChatWaiter): boolean {
    if (waiter.dispatching && waiter.entry === null) return false;
    this.#cancel(waiter);
    return true;
  }

  async #checkQueued(waiter: ChatWaiter): Promise<void> {
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
    if (waiter.workerId === null && now - waiter.takenSinceMs > acceptPatienceMs) this.#recover(waiter);
  }

  /** Its worker died: before output it is dispatched again, after output the stream ends with an error. */
  #recover(waiter: ChatWaiter): void {
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

  /** Pushes it once its account has a share of the workers' runs for it; until then it waits here. Never rejects. */
  async #pushInTurn(waiter: ChatWaiter): Promise<void> {
    const ended = new AbortController();
    waiter.onEnded = () => ended.abort();
    waiter.entry = this.#shares.enter('chat', waiter.request, ended.signal);
    try {
      await waiter.entry.granted;
      waiter.entry = null;
      waiter.ticket = await this.#push(waiter.job, waiter.lane);
      waiter.dispatching = false;
    } catch (error) {
      // What ended it before has released its reservation.
      if (!ended.signal.aborted) this.#failToPush(waiter, error);
    }
  }

  #failToPush(waiter: ChatWaiter, error: unknown): void {
    release(this.#dependencies, waiter.request, this.#log);
    this.#waiters.fail(waiter, toAppError(error));
  }

  async #push(job: ChatJob, lane: Lane): Promise<number> {
    const queue = this.#queues[lane];
    const isLong = isLongJson(job, maxInlineBytes);
    const json = isLong ? await encodeLargeJson(job, job.request.accountId) : JSON.stringify(job);
    if (typeof json === 'string' && json.length <= maxInlineBytes) return await queue.push(json);
    const id = payloadId(job.request, job.attempt);
    const payload = typeof json === 'string' ? Buffer.from(json) : json;
    await this.#payloads.put(id, payload, job.request.deadlineAtMs);
    try {
      const { request, replyChannel, attempt } = job;
      const stored = { v: 1, stored: id, bytes: payload.length, replyChannel } as const;
      const item: StoredChat = { ...stored, requests: [request], attempt };
      return await queue.push(JSON.stringify(item));
    } catch (error) {
      this.#drop(job.request, job.attempt);
      throw error;
    }
  }

  /** What is not taken from the queue any more need not lie in Redis until its time is over. */
  #drop(request: AdmittedRequest, attempt: number): void {
    this.#payloads.drop(payloadId(request, attempt)).catch((error: unknown) => {
      this.#log.debug({ requestId: request.requestId, err: error }, 'a payload could not be dropped');
    });
  }

  #cancel(waiter: ChatWaiter, cause?: CancelCause): void {
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
    // If a worker took it just now, its `accepted` frame finds nobody waiting, and is answered with a cancel.
    this.#queues[waiter.lane]
      .cancel(waiter.ticket)
      .then((removed) => {
        if (!removed) return;
        this.#waiters.endLeft(requestId);
        release(this.#dependencies, waiter.request, this.#log);
        this.#drop(waiter.request, waiter.order.attempt);
      })
      .catch((error: unknown) => this.#log.debug({ err: error }, 'a queued chat could not be cancelled'));
  }
}

/** Its place never rises. */
function toldAs(waiter: ChatWaiter, position: number): void {
  waiter.position = Math.min(position, waiter.position ?? position);
}

const brokenOff = (): AppError =>
  new AppError('upstream_error', {
    message:
      'The answer broke off on our side. What came of it is charged, and no more. Send the request again.',
  });
