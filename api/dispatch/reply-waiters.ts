import { AppError } from '../../shared/contract/errors.ts';
import type { FairBudget } from '../../shared/fairness/fair-budget.ts';
import { isKept, type QueueName } from '../../shared/queue/job-kinds.ts';
import { heartbeatLifetimeMs } from '../../shared/queue/heartbeat-times.ts';
import type { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisChannels, redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import { decodeFrames, decodeMark, decodeOffer, type Frame } from '../../shared/reply/frame.ts';
import { readErrorPayload } from '../../shared/reply/error-payload.ts';
import type { CancelCause } from '../../shared/reply/reply-channel.ts';
import { ownBuffer, type LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { IncomingResults } from './incoming-results.ts';
import { acquireWhenOffered } from './response-memory.ts';
import type { Waiter, WaiterOwner } from './waiter.ts';
import { UnderWay } from './under-way.ts';
import { WorkerControls, type WaiterControl } from './worker-controls.ts';

const checkIntervalMs = 1_000;
/** With no worker at all, a caller is told so after this time; a restart takes less. */
const noWorkerPatienceMs = 15_000;
/** A worker that lives and sends nothing of a result for so long, although it is asked again and again, has lost it. */
const resultPatienceMs = 30_000;

/**
 * The process's one subscription to its reply channel. Frames of one attempt are counted: a gap means that the
 * stream has a hole, which ends it with an error and never goes unnoticed.
 */
export class ReplyWaiters {
  readonly channel: string;
  readonly #redis: RedisClient;
  readonly #subscriber: RedisClient;
  readonly #registry: WorkerRegistryStore;
  /** What answers may hold of this process until their callers have read them. */
  readonly #memory: FairBudget;
  readonly #log: Logger;
  readonly #waiters = new Map<string, { waiter: Waiter; owner: WaiterOwner }>();
  readonly #underWay = new UnderWay();
  readonly #results: IncomingResults;
  readonly #unsure = new Set<Waiter>();
  readonly #controls: WorkerControls;
  readonly #lastAliveAtMs = new Map<QueueName, number>();
  /** Until then workers that live may not have beaten again after an outage of Redis. */
  #unsureUntilMs = -Infinity;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;
  #checking = false;
  #whenEmpty: (() => void) | null = null;

  constructor(
    apiId: string,
    redis: RedisClient,
    subscriber: RedisClient,
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
    this.#controls = new WorkerControls(redis, log);
    this.#results = new IncomingResults(
      {
        ask: (requestId, upToByte) => {
          const waiter = this.#waiters.get(requestId)?.waiter;
          if (waiter !== undefined) this.#controls.askFor(waiter, upToByte);
        },
        refuse: (requestId, error) => {
          const waiter = this.#waiters.get(requestId)?.waiter;
          if (waiter !== undefined) this.fail(waiter, error);
        },
      },
      log,
      nowMs,
    );
    this.#timer = setInterval(() => runInBackground(this.#check(), 'worker check', log), checkIntervalMs);
    this.#timer.unref();
  }

  /** Everything that is waited for, with its owner. */
  entries(): Iterable<{ readonly waiter: Waiter; readonly owner: WaiterOwner }> {
    return this.#waiters.values();
  }

  /** How many requests of an account have not ended: those of callers who left are among them. */
  countOf(queue: QueueName, accountId: string): number {
    return this.#underWay.countOf(queue, accountId);
  }

  async subscribe(): Promise<void> {
    const ownChannel = Buffer.from(this.channel);
    this.#subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
      if (!channel.equals(ownChannel)) return;
      for (const frame of decodeFrames(message)) this.#take(frame);
    });
    // What was sent while the subscription was cut is gone, and with it perhaps the last frame of any request.
    this.#subscriber.on('close', () => this.#letGo());
    await this.#subscriber.subscribe(this.channel);
  }

  add(waiter: Waiter, owner: WaiterOwner): void {
    if (this.#subscriber.status !== 'ready') throw new AppError('service_unavailable');
    // While nobody waited, nobody looked.
    if (this.#waiters.size === 0) this.#lastAliveAtMs.clear();
    if (!this.#lastAliveAtMs.has(waiter.queue)) this.#lastAliveAtMs.set(waiter.queue, this.#nowMs());
    this.#waiters.set(waiter.request.requestId, { waiter, owner });
    this.#underWay.add(waiter);
  }

  /** The request has ended. Stops waiting without telling the receiver. */
  remove(requestId: string): boolean {
    const waiter = this.#forget(requestId);
    if (waiter === undefined) return false;
    this.#underWay.end(waiter);
    return true;
  }

  /** Stops waiting for a request whose caller left. It is under way until its worker has ended it. */
  leave(requestId: string): boolean {
    const waiter = this.#forget(requestId);
    if (waiter === undefined) return false;
    this.#underWay.leave(waiter);
    return true;
  }

  /** One whose caller left was taken off its queue. */
  endLeft(requestId: string): void {
    this.#underWay.endLeft(requestId);
  }

  /** Ends a request from this side: its worker is told to stop, its receiver why. */
  fail(waiter: Waiter, error: AppError): void {
    if (!this.remove(waiter.request.requestId)) return;
    this.#controls.control(waiter, 'cancel', { isOurFault: true });
    waiter.receiver.fail(error);
  }

  control(waiter: Waiter, action: WaiterControl, cause?: CancelCause): void {
    this.#controls.control(waiter, action, cause);
  }

  /** Resolves when every request has been answered. */
  async drained(): Promise<void> {
    if (this.#waiters.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #take(frame: Frame): void {
    if (frame.kind === 'mark') {
      // A worker goes on sending once it knows that this process keeps up.
      const { workerId, sentBytes } = decodeMark(frame.payload);
      this.#controls.received(workerId, this.channel, sentBytes);
      return;
    }
    const entry = this.#waiters.get(frame.requestId);
    if (entry === undefined) {
      this.#underWay.take(frame);
      // Nobody waits any more: the caller left while the request was queued. Its worker need not go on.
      if (frame.kind === 'accepted') this.#controls.cancelStray(frame.payload.toString(), frame.requestId);
      return;
    }
    const { waiter } = entry;
    const place = waiter.order.take(frame);
    if (place === 'stale') return;
    // A kept answer is read from where it is kept; here it is only known to have come on.
    if (place === 'gap' && !isKept(waiter.request)) {
      this.#log.warn({ requestId: frame.requestId }, 'frames were lost');
      this.fail(waiter, lostOnItsWay());
      return;
    }
    switch (frame.kind) {
      case 'accepted':
        // Of an earlier attempt's result nothing more will come.
        this.#results.drop(frame.requestId);
        waiter.workerId = frame.payload.toString();
        if (waiter.hasOutput && waiter.receiver.mayRestart?.() === false) this.fail(waiter, lostOnItsWay());
        return;
      case 'delta':
        waiter.hasOutput = true;
        waiter.tokens = frame.tokens;
        waiter.receiver.delta(frame.payload);
        return;
      case 'progress':
      // Stands only where frames are kept.
      case 'moved':
        return;
      case 'result':
      // Its readers find what is stored where it is kept.
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

  #end(waiter: Waiter, answer: LentBuffer): void {
    this.remove(waiter.request.requestId);
    waiter.receiver.end(answer);
  }

  #forget(requestId: string): Waiter | undefined {
    const waiter = this.#waiters.get(requestId)?.waiter;
    this.#waiters.delete(requestId);
    this.#results.drop(requestId);
    if (waiter !== undefined && this.#waiters.size === 0) this.#whenEmpty?.();
    return waiter;
  }

  /** A kept answer reaches its readers by another way; only its end may have gone by unnoticed. */
  #letGo(): void {
    for (const { waiter } of this.#waiters.values()) {
      if (isKept(waiter.request)) this.#unsure.add(waiter);
      else this.fail(waiter, new AppError('service_unavailable'));
    }
  }

  /** Of the kept requests that may have ended unnoticed, those that hold nothing any more have. */
  async #removeEnded(): Promise<void> {
    for (const waiter of this.#unsure) {
      const { requestId, accountId } = waiter.request;
      const reservations = redisKeys.reservations(shardOf(accountId));
      if ((await this.#redis.hexists(reservations, requestId)) === 1) continue;
      this.#unsure.delete(waiter);
      this.remove(requestId);
    }
  }

  async #check(): Promise<void> {
    const hasWork = this.#waiters.size > 0 || this.#controls.hasUntold || this.#underWay.hasLeft;
    if (this.#checking || !hasWork) return;
    this.#checking = true;
    try {
      await this.#controls.tellUntold();
      await this.#removeEnded();
      const queues = this.#underWay.queuesOfLeft();
      for (const { waiter } of this.#waiters.values()) queues.add(waiter.queue);
      // Where nobody waits, nobody looks.
      for (const queue of this.#lastAliveAtMs.keys())
        if (!queues.has(queue)) this.#lastAliveAtMs.delete(queue);
      for (const queue of queues) this.#checkQueue(queue, await this.#registry.findAlive(queue));
      // After a trip to Redis: what came while this process stood still has been read by now.
      this.#results.remind();
    } catch (error) {
      this.#log.debug({ err: error }, 'the workers could not be looked up');
      this.#forgetAbsences();
    } finally {
      this.#checking = false;
    }
  }

  /** An outage of Redis says nothing of workers: they go on, and settle once it is back. */
  #forgetAbsences(): void {
    const nowMs = this.#nowMs();
    for (const queue of this.#lastAliveAtMs.keys()) this.#lastAliveAtMs.set(queue, nowMs);
    this.#unsureUntilMs = nowMs + heartbeatLifetimeMs;
  }

  #checkQueue(queue: QueueName, alive: ReadonlySet<string>): void {
    const nowMs = this.#nowMs();
    if (alive.size > 0) this.#lastAliveAtMs.set(queue, nowMs);
    if (nowMs < this.#unsureUntilMs) return;
    this.#underWay.endLost(queue, alive);
    const aloneForMs = nowMs - (this.#lastAliveAtMs.get(queue) ?? nowMs);
    for (const { waiter, owner } of this.#waiters.values()) {
      if (waiter.queue !== queue) continue;
      const isInHand = waiter.workerId !== null && alive.has(waiter.workerId);
      if (!isInHand && Date.now() > waiter.request.deadlineAtMs) {
        owner.abandon(waiter);
        this.fail(waiter, new AppError('deadline_exceeded'));
      } else if (aloneForMs > noWorkerPatienceMs && !this.#results.has(waiter.request.requestId)) {
        owner.abandon(waiter);
        this.fail(waiter, new AppError('service_unavailable'));
      } else if (isInHand && this.#results.silentForMs(waiter.request.requestId) > resultPatienceMs) {
        this.fail(waiter, lostOnItsWay());
      } else {
        owner.check(waiter, alive);
      }
    }
  }
}

const lostOnItsWay = (): AppError =>
  new AppError('service_unavailable', { message: 'A part of the answer was lost on its way.' });
