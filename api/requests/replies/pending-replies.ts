import type { ErrorCode } from '../../../shared/contract/error-kinds.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { isResponseStored } from '../../../shared/money/admitted-request.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisChannels } from '../../../shared/platform/redis/redis-keys.ts';
import type { Subscriber } from '../../../shared/platform/redis/subscriber-client.ts';
import { decodeFrames, decodeMark, decodeOffer, type Frame } from '../../../shared/work/replies/frame.ts';
import { readErrorPayload } from '../../../shared/work/replies/error-payload.ts';
import type { CancelCause } from '../../../shared/work/replies/worker-control.ts';
import { unpooledBuffer, type PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { findLostReplies, setPaused, type ReplyLiveness } from './find-lost-replies.ts';
import { IncomingResults } from './incoming-results.ts';
import { acquireWhenOffered } from './response-memory.ts';
import type { FactsInbox } from './facts-inbox.ts';
import type { PendingReply, ReplyOwner } from './pending-reply.ts';
import { RequestsInFlight } from './requests-in-flight.ts';
import { type AbsenceOptions, WorkerAbsence } from './worker-absence.ts';
import { WorkerControls, type ReplyControl } from './worker-controls.ts';

const checkIntervalMs = 1_000;
/** While a queue has no worker, a new one is noticed this soon, because callers are rejected until then. */
const returnIntervalMs = 100;
/** If a live worker sends no piece of a result for this long, despite repeated requests, the result is lost. */
const resultTimeoutMs = 30_000;

interface Entry extends ReplyLiveness {
  readonly pending: PendingReply;
  readonly owner: ReplyOwner;
}

/**
 * Receives all frames sent to this process's reply channel, over one subscription. The frames of an attempt are
 * numbered. A gap ends a stream with an error, so that lost frames never go unnoticed.
 */
export class PendingReplies {
  readonly channel: string;
  readonly #redis: RedisClient;
  readonly #subscriber: Subscriber;
  /** Memory for responses until their callers have read them. */
  readonly #memory: FairBudget;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #inFlight: RequestsInFlight;
  readonly #results: IncomingResults;
  readonly #controls: WorkerControls;
  readonly #absence: WorkerAbsence;
  readonly #facts: FactsInbox;
  readonly #noWorkerTimeoutMs: number;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;
  #isChecking = false;
  #returnTimer: NodeJS.Timeout | null = null;
  #isClosed = false;
  #whenEmpty: (() => void) | null = null;

  constructor(
    apiId: string,
    redis: RedisClient,
    subscriber: Subscriber,
    registry: Pick<WorkerRegistryStore, 'findWorkers'>,
    memory: FairBudget,
    log: Logger,
    absence: AbsenceOptions,
    facts: FactsInbox,
    nowMs = () => performance.now(),
  ) {
    this.channel = redisChannels.reply(apiId);
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#memory = memory;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#facts = facts;
    this.#inFlight = new RequestsInFlight((requestId) => facts.end(requestId));
    this.#noWorkerTimeoutMs = absence.noWorkerTimeoutMs;
    this.#absence = new WorkerAbsence(
      registry,
      { ...absence, countWaiting: (queue) => this.#countWaiting(queue) },
      log,
      nowMs,
    );
    this.#controls = new WorkerControls(redis, log);
    this.#results = new IncomingResults(
      {
        ask: (requestId, upToByte) => {
          const pending = this.#entries.get(requestId)?.pending;
          if (pending !== undefined) this.#controls.requestResult(pending, upToByte);
        },
        fail: (requestId, error) => {
          const pending = this.#entries.get(requestId)?.pending;
          if (pending !== undefined) this.fail(pending, error);
        },
      },
      log,
      nowMs,
    );
    subscriber.listen(this.channel, {
      onMessage: (message) => {
        for (const frame of decodeFrames(message)) this.#handleFrame(frame);
      },
      onLost: () => this.#failAll(),
    });
    this.#timer = setInterval(() => runInBackground(this.#check(), 'worker check', log), checkIntervalMs);
    this.#timer.unref();
  }

  /** Whether replies can be received now. */
  get isListening(): boolean {
    return this.#subscriber.isListening(this.channel);
  }

  /** All pending replies with their owners. */
  entries(): Iterable<{ readonly pending: PendingReply; readonly owner: ReplyOwner }> {
    return this.#entries.values();
  }

  /** Number of an account's requests in progress, including those whose callers disconnected. */
  countOf(queue: QueueName, accountId: string): number {
    return this.#inFlight.countOf(queue, accountId);
  }

  /** @throws AppError `service_unavailable` if no reply could be received, or the queue has had no worker for a while */
  add(pending: PendingReply, owner: ReplyOwner): void {
    if (!this.isListening) throw new AppError('service_unavailable');
    const { request, queue } = pending;
    if (this.#absence.isUnserved(queue)) {
      this.#absence.noteRejection(queue);
      throw new AppError('service_unavailable');
    }
    this.#entries.set(request.requestId, {
      pending,
      owner,
      request,
      lastActivityAtMs: this.#nowMs(),
      checksWithoutReservation: 0,
      checksUntilLost: owner.checksUntilLost,
      isPaused: false,
    });
    this.#inFlight.add(pending);
  }

  /** Removes an ended request without notifying its receiver. */
  remove(requestId: string): boolean {
    const pending = this.#delete(requestId);
    if (pending === undefined) return false;
    this.#inFlight.end(pending);
    return true;
  }

  /**
   * Removes the pending reply because its caller disconnected. `countOf` includes the request until its worker ends it.
   */
  markDisconnected(requestId: string): boolean {
    const pending = this.#delete(requestId);
    if (pending === undefined) return false;
    this.#inFlight.markDisconnected(pending);
    return true;
  }

  /** Ends a request that was removed from its queue after its caller disconnected. */
  endDisconnected(requestId: string): void {
    this.#inFlight.endDisconnected(requestId);
  }

  /** Fails a request: cancels it at its worker, and reports the error to the receiver. */
  fail(pending: PendingReply, error: AppError): void {
    if (!this.remove(pending.request.requestId)) return;
    this.#controls.control(pending, 'cancel', { isOurFault: true });
    pending.receiver.fail(error);
  }

  control(pending: PendingReply, action: ReplyControl, cause?: CancelCause): void {
    const entry = this.#entries.get(pending.request.requestId);
    if (entry !== undefined) setPaused(entry, action === 'pause', this.#nowMs());
    this.#controls.control(pending, action, cause);
  }

  /** Resolves once no reply is pending. */
  async drained(): Promise<void> {
    if (this.#entries.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    if (this.#returnTimer !== null) clearTimeout(this.#returnTimer);
  }

  #handleFrame(frame: Frame): void {
    if (frame.kind === 'mark') {
      // Acknowledge the mark: a worker sends only a limited number of bytes without an acknowledgement.
      const { workerId, sentBytes } = decodeMark(frame.payload);
      this.#controls.acknowledge(workerId, this.channel, sentBytes);
      return;
    }
    if (frame.kind === 'facts') {
      this.#facts.receive(frame.requestId, frame.payload);
      return;
    }
    const entry = this.#entries.get(frame.requestId);
    if (entry === undefined) {
      this.#inFlight.handleFrame(frame);
      if (frame.kind === 'accepted') this.#stopUnexpected(frame);
      return;
    }
    const { pending } = entry;
    entry.lastActivityAtMs = this.#nowMs();
    entry.checksWithoutReservation = 0;
    const order = pending.order.classify(frame);
    if (order === 'stale') return;
    // A gap does not matter for a stored response: it is read from storage, and its frames here only show progress.
    if (order === 'gap' && !isResponseStored(pending.request)) {
      this.#log.warn({ requestId: frame.requestId }, 'frames lost');
      this.fail(pending, lostInTransit(pending));
      return;
    }
    switch (frame.kind) {
      case 'accepted':
        // A new attempt begins, so the rest of an earlier attempt's result will not arrive.
        this.#results.drop(frame.requestId);
        pending.workerId = frame.payload.toString();
        pending.onAccepted?.();
        if (pending.hasOutput && pending.receiver.mayRestart?.() === false)
          this.fail(pending, lostInTransit(pending));
        return;
      case 'delta':
        pending.hasOutput = true;
        pending.tokens = frame.tokens;
        pending.receiver.delta(frame.payload);
        return;
      // Replaces stored frames that are now in the object store. Occurs only in storage, not on this channel.
      case 'moved':
        return;
      case 'result':
      // The result itself is in storage, where its readers fetch it.
      case 'stored':
        this.#end(pending, unpooledBuffer(frame.payload));
        return;
      // Announces a large result, which the worker sends in pieces on request.
      case 'offered': {
        const length = decodeOffer(frame.payload);
        const { requestId, accountId } = pending.request;
        this.#results.add(requestId, accountId, length, acquireWhenOffered(this.#memory, pending, length));
        return;
      }
      // Part of an offered result.
      case 'piece': {
        const result = this.#results.take(frame.requestId, frame.payload);
        if (result !== null) this.#end(pending, result);
        return;
      }
      case 'error':
        this.remove(frame.requestId);
        pending.receiver.fail(readErrorPayload(frame.payload, frame.requestId));
        return;
      default:
        frame.kind satisfies never;
    }
  }

  /**
   * Stops a worker that accepted a request without a pending reply: the caller disconnected while the request was
   * queued, or has an error because it was unknown whether the request had been queued.
   */
  #stopUnexpected({ requestId, payload }: Frame): void {
    const cause = this.#inFlight.hasDisconnectedFrom(requestId) ? {} : { isOurFault: true as const };
    this.#controls.cancelRequest(payload.toString(), requestId, cause);
  }

  #end(pending: PendingReply, response: PooledBuffer): void {
    this.remove(pending.request.requestId);
    pending.receiver.end(response);
  }

  #delete(requestId: string): PendingReply | undefined {
    const pending = this.#entries.get(requestId)?.pending;
    this.#entries.delete(requestId);
    this.#results.drop(requestId);
    if (pending !== undefined && this.#entries.size === 0) this.#whenEmpty?.();
    return pending;
  }

  /**
   * Called after the subscription was interrupted. Messages sent in the meantime are lost, possibly including the last
   * frame of a request. Stored responses are unaffected, because they are read from storage.
   */
  #failAll(): void {
    for (const { pending, owner } of this.#entries.values()) {
      if (isResponseStored(pending.request)) continue;
      this.fail(pending, createError('service_unavailable', pending, owner.mayRun(pending)));
    }
  }

  async #failLost(): Promise<void> {
    // Exclude requests with an offered result, because `#results` tracks those results.
    const silent = [...this.#entries.values()].filter(({ request }) => !this.#results.has(request.requestId));
    for (const { pending, request } of await findLostReplies(this.#redis, silent, this.#nowMs)) {
      if (isResponseStored(request)) {
        this.remove(request.requestId);
      } else {
        this.#log.warn({ requestId: request.requestId }, 'end of a response lost');
        this.fail(pending, lostInTransit(pending));
      }
    }
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      if (this.#controls.hasUndelivered) await this.#controls.retryUndelivered();
      if (this.#entries.size > 0) await this.#failLost();
      const workers = await this.#absence.lookUp();
      if (workers === null) return;
      for (const [queue, { alive }] of workers) this.#checkQueue(queue, alive);
      // Do this last: after the round trips to Redis above, pieces that arrived while this process was stalled have
      // been read.
      this.#results.rerequestStalled();
      this.#waitForReturn();
    } finally {
      this.#isChecking = false;
    }
  }

  #waitForReturn(): void {
    if (this.#isClosed || this.#returnTimer !== null || !this.#absence.hasUnserved()) return;
    this.#returnTimer = setTimeout(() => {
      this.#returnTimer = null;
      const lookingUp = this.#absence.lookUp().then(() => this.#waitForReturn());
      runInBackground(lookingUp, 'worker check', this.#log);
    }, returnIntervalMs);
    this.#returnTimer.unref();
  }

  #checkQueue(queue: QueueName, alive: ReadonlySet<string>): void {
    const unservedForMs = this.#absence.findUnservedMs(queue);
    if (unservedForMs === null) return;
    this.#inFlight.endLost(queue, alive);
    for (const { pending, owner } of this.#entries.values()) {
      if (pending.queue !== queue) continue;
      try {
        this.#checkReply(pending, owner, alive, unservedForMs);
      } catch (error) {
        // The other callers must not wait longer because of this one.
        this.#log.error({ requestId: pending.request.requestId, err: error }, 'checking a request failed');
      }
    }
  }

  #checkReply(
    pending: PendingReply,
    owner: ReplyOwner,
    alive: ReadonlySet<string>,
    unservedForMs: number,
  ): void {
    const { requestId, deadlineAtMs } = pending.request;
    const isRunning = pending.workerId !== null && alive.has(pending.workerId);
    if (!isRunning && Date.now() > deadlineAtMs) {
      owner.abandon(pending);
      this.fail(pending, createError('deadline_exceeded', pending, pending.workerId !== null));
    } else if (!isRunning && unservedForMs > this.#noWorkerTimeoutMs && !this.#results.has(requestId)) {
      this.#absence.noteRejection(pending.queue);
      owner.abandon(pending);
      this.fail(pending, createError('service_unavailable', pending, pending.workerId !== null));
    } else if (isRunning && this.#results.silentForMs(requestId) > resultTimeoutMs) {
      this.fail(pending, lostInTransit(pending));
    } else {
      owner.check(pending, alive);
    }
  }

  #countWaiting(queue: QueueName): number {
    let count = 0;
    for (const { pending } of this.#entries.values()) if (pending.queue === queue) count += 1;
    return count;
  }
}

const lostInTransit = ({ request }: PendingReply): AppError =>
  new AppError('service_unavailable', {
    message: 'Part of the response was lost in transit.',
    possiblyChargedId: request.requestId,
  });

/** The error for a request that a worker may run, or may have run, if the flag is set. */
function createError(code: ErrorCode, { request }: PendingReply, mayHaveRun: boolean): AppError {
  return new AppError(code, { possiblyChargedId: mayHaveRun ? request.requestId : undefined });
}
