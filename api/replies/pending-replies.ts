import { AppError } from '../../shared/contract/errors.ts';
import type { FairBudget } from '../../shared/fairness/fair-budget.ts';
import { isResponseStored } from '../../shared/billing/admitted-request.ts';
import type { QueueName } from '../../shared/queue/job-kinds.ts';
import type { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisChannels } from '../../shared/redis/redis-keys.ts';
import type { Subscriber } from '../../shared/redis/subscriber-client.ts';
import { decodeFrames, decodeMark, decodeOffer, type Frame } from '../../shared/reply/frame.ts';
import { readErrorPayload } from '../../shared/reply/error-payload.ts';
import type { CancelCause } from '../../shared/reply/worker-control.ts';
import { ownBuffer, type PooledBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import {
  findMissedEnds,
  checksToEnd,
  checksToEndQueued,
  setPaused,
  type ReplyLiveness,
} from './find-missed-ends.ts';
import { IncomingResults } from './incoming-results.ts';
import { acquireWhenOffered } from './response-memory.ts';
import type { PendingReply, ReplyOwner } from './pending-reply.ts';
import { RequestsInFlight } from './requests-in-flight.ts';
import { WorkerAbsence } from './worker-absence.ts';
import { WorkerControls, type WaiterControl } from './worker-controls.ts';

const checkIntervalMs = 1_000;
/** Time without any worker after which callers get an error. Restarting workers takes less. */
const noWorkerTimeoutMs = 15_000;
/** If a live worker sends nothing of a result for this long, despite repeated requests, the result is lost. */
const resultTimeoutMs = 30_000;

interface Entry extends ReplyLiveness {
  readonly waiter: PendingReply;
  readonly owner: ReplyOwner;
}

/**
 * Receives the frames of this process's reply channel, over one subscription. Frames of an attempt are numbered: a gap
 * in a stream ends it with an error, so that lost frames never go unnoticed.
 */
export class PendingReplies {
  readonly channel: string;
  readonly #redis: RedisClient;
  readonly #subscriber: Subscriber;
  readonly #registry: WorkerRegistryStore;
  /** Memory for responses until their callers have read them. */
  readonly #memory: FairBudget;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #inFlight = new RequestsInFlight();
  readonly #results: IncomingResults;
  readonly #controls: WorkerControls;
  readonly #absence: WorkerAbsence;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;
  #checking = false;
  #whenEmpty: (() => void) | null = null;

  constructor(
    apiId: string,
    redis: RedisClient,
    subscriber: Subscriber,
    registry: WorkerRegistryStore,
    memory: FairBudget,
    log: Logger,
    nowMs = () => performance.now(),
  ) {
    this.channel = redisChannels.reply(apiId);
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#registry = registry;
    this.#memory = memory;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#absence = new WorkerAbsence(nowMs);
    this.#controls = new WorkerControls(redis, log);
    this.#results = new IncomingResults(
      {
        ask: (requestId, upToByte) => {
          const waiter = this.#entries.get(requestId)?.waiter;
          if (waiter !== undefined) this.#controls.requestResult(waiter, upToByte);
        },
        refuse: (requestId, error) => {
          const waiter = this.#entries.get(requestId)?.waiter;
          if (waiter !== undefined) this.fail(waiter, error);
        },
      },
      log,
      nowMs,
    );
    subscriber.listen(this.channel, {
      onMessage: (message) => {
        for (const frame of decodeFrames(message)) this.#take(frame);
      },
      onLost: () => this.#failAll(),
    });
    this.#timer = setInterval(() => runInBackground(this.#check(), 'worker check', log), checkIntervalMs);
    this.#timer.unref();
  }

  /** All pending replies with their owners. */
  entries(): Iterable<{ readonly waiter: PendingReply; readonly owner: ReplyOwner }> {
    return this.#entries.values();
  }

  /** Number of an account's requests in progress, including those whose callers disconnected. */
  countOf(queue: QueueName, accountId: string): number {
    return this.#inFlight.countOf(queue, accountId);
  }

  add(waiter: PendingReply, owner: ReplyOwner): void {
    if (!this.#subscriber.isListening(this.channel)) throw new AppError('service_unavailable');
    if (this.#entries.size === 0) this.#absence.keep(new Set());
    this.#absence.await(waiter.queue);
    const { request } = waiter;
    this.#entries.set(request.requestId, {
      waiter,
      owner,
      request,
      lastActivityAtMs: this.#nowMs(),
      endedChecks: 0,
      checksToEnd: waiter.queue === 'chat' ? checksToEnd : checksToEndQueued,
      isPaused: false,
    });
    this.#inFlight.add(waiter);
  }

  /** Removes an ended request without notifying its receiver. */
  remove(requestId: string): boolean {
    const waiter = this.#delete(requestId);
    if (waiter === undefined) return false;
    this.#inFlight.end(waiter);
    return true;
  }

  /** Removes the pending reply of a caller that disconnected. The request still counts until its worker ends it. */
  leave(requestId: string): boolean {
    const waiter = this.#delete(requestId);
    if (waiter === undefined) return false;
    this.#inFlight.leave(waiter);
    return true;
  }

  /** Ends a request that was taken off its queue after its caller disconnected. */
  endLeft(requestId: string): void {
    this.#inFlight.endLeft(requestId);
  }

  /** Fails a request: cancels it at its worker and reports the error to the receiver. */
  fail(waiter: PendingReply, error: AppError): void {
    if (!this.remove(waiter.request.requestId)) return;
    this.#controls.control(waiter, 'cancel', { isOurFault: true });
    waiter.receiver.fail(error);
  }

  control(waiter: PendingReply, action: WaiterControl, cause?: CancelCause): void {
    const entry = this.#entries.get(waiter.request.requestId);
    if (entry !== undefined) setPaused(entry, action === 'pause', this.#nowMs());
    this.#controls.control(waiter, action, cause);
  }

  /** Resolves once no reply is pending. */
  async drained(): Promise<void> {
    if (this.#entries.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #take(frame: Frame): void {
    if (frame.kind === 'mark') {
      // The worker continues to send once it knows that this process keeps up.
      const { workerId, sentBytes } = decodeMark(frame.payload);
      this.#controls.received(workerId, this.channel, sentBytes);
      return;
    }
    const entry = this.#entries.get(frame.requestId);
    if (entry === undefined) {
      this.#inFlight.take(frame);
      // No reply is pending: the caller disconnected while the request was queued. Stop the worker.
      if (frame.kind === 'accepted') this.#controls.cancelStray(frame.payload.toString(), frame.requestId);
      return;
    }
    const { waiter } = entry;
    entry.lastActivityAtMs = this.#nowMs();
    entry.endedChecks = 0;
    const order = waiter.order.take(frame);
    if (order === 'stale') return;
    // Stored responses are read from storage; their frames only show progress here.
    if (order === 'gap' && !isResponseStored(waiter.request)) {
      this.#log.warn({ requestId: frame.requestId }, 'frames lost');
      this.fail(waiter, lostInTransit());
      return;
    }
    switch (frame.kind) {
      case 'accepted':
        // An earlier attempt's result will not be completed.
        this.#results.drop(frame.requestId);
        waiter.workerId = frame.payload.toString();
        if (waiter.hasOutput && waiter.receiver.mayRestart?.() === false) this.fail(waiter, lostInTransit());
        return;
      case 'delta':
        waiter.hasOutput = true;
        waiter.tokens = frame.tokens;
        waiter.receiver.delta(frame.payload);
        return;
      // Occurs only in stored frames.
      case 'moved':
        return;
      case 'result':
      // Readers fetch a stored result from storage.
      case 'stored':
        this.#end(waiter, ownBuffer(frame.payload));
        return;
      case 'offered': {
        const length = decodeOffer(frame.payload);
        const { requestId, accountId } = waiter.request;
        this.#results.add(requestId, accountId, length, acquireWhenOffered(this.#memory, waiter, length));
        return;
      }
      case 'piece': {
        const whole = this.#results.take(frame.requestId, frame.payload);
        if (whole !== null) this.#end(waiter, whole);
        return;
      }
      case 'error':
        this.remove(frame.requestId);
        waiter.receiver.fail(readErrorPayload(frame.payload));
        return;
      default:
        frame.kind satisfies never;
    }
  }

  #end(waiter: PendingReply, response: PooledBuffer): void {
    this.remove(waiter.request.requestId);
    waiter.receiver.end(response);
  }

  #delete(requestId: string): PendingReply | undefined {
    const waiter = this.#entries.get(requestId)?.waiter;
    this.#entries.delete(requestId);
    this.#results.drop(requestId);
    if (waiter !== undefined && this.#entries.size === 0) this.#whenEmpty?.();
    return waiter;
  }

  /**
   * Messages sent during the interruption are gone, possibly including the last frame of a request. Stored responses
   * are unaffected, because they are read from storage.
   */
  #failAll(): void {
    for (const { waiter } of this.#entries.values()) {
      if (!isResponseStored(waiter.request)) this.fail(waiter, new AppError('service_unavailable'));
    }
  }

  async #failLost(): Promise<void> {
    // Results in transit are tracked by `#results`.
    const silent = [...this.#entries.values()].filter(({ request }) => !this.#results.has(request.requestId));
    for (const { waiter, request } of await findMissedEnds(this.#redis, silent, this.#nowMs)) {
      if (isResponseStored(request)) {
        this.remove(request.requestId);
      } else {
        this.#log.warn({ requestId: request.requestId }, 'end of a response lost');
        this.fail(waiter, lostInTransit());
      }
    }
  }

  async #check(): Promise<void> {
    const hasWork = this.#entries.size > 0 || this.#controls.hasUntold || this.#inFlight.hasDisconnected;
    if (this.#checking || !hasWork) return;
    this.#checking = true;
    try {
      await this.#controls.tellUntold();
      await this.#failLost();
      const queues = this.#inFlight.queuesOfLeft();
      for (const { waiter } of this.#entries.values()) queues.add(waiter.queue);
      this.#absence.keep(queues);
      for (const queue of queues) this.#checkQueue(queue, await this.#registry.findAlive(queue));
      // After a round trip to Redis, all messages that arrived while this process was stalled have been read.
      this.#results.remind();
    } catch (error) {
      this.#log.debug({ err: error }, 'worker look-up failed');
      this.#absence.forget();
    } finally {
      this.#checking = false;
    }
  }

  #checkQueue(queue: QueueName, alive: ReadonlySet<string>): void {
    const unservedForMs = this.#absence.measure(queue, alive);
    if (unservedForMs === null) return;
    this.#inFlight.endLost(queue, alive);
    for (const { waiter, owner } of this.#entries.values()) {
      if (waiter.queue !== queue) continue;
      const isRunning = waiter.workerId !== null && alive.has(waiter.workerId);
      if (!isRunning && Date.now() > waiter.request.deadlineAtMs) {
        owner.abandon(waiter);
        this.fail(waiter, new AppError('deadline_exceeded'));
      } else if (unservedForMs > noWorkerTimeoutMs && !this.#results.has(waiter.request.requestId)) {
        owner.abandon(waiter);
        this.fail(waiter, new AppError('service_unavailable'));
      } else if (isRunning && this.#results.silentForMs(waiter.request.requestId) > resultTimeoutMs) {
        this.fail(waiter, lostInTransit());
      } else {
        owner.check(waiter, alive);
      }
    }
  }
}

const lostInTransit = (): AppError =>
  new AppError('service_unavailable', { message: 'A part of the answer was lost on its way.' });
