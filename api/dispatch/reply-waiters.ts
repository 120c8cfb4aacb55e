import { AppError } from '../../shared/contract/errors.ts';
import type { FairBudget } from '../../shared/fairness/fair-budget.ts';
import { isKept, type QueueName } from '../../shared/queue/job-kinds.ts';
import type { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisChannels } from '../../shared/redis/redis-keys.ts';
import type { Subscriber } from '../../shared/redis/subscriber-client.ts';
import { decodeFrames, decodeMark, decodeOffer, type Frame } from '../../shared/reply/frame.ts';
import { readErrorPayload } from '../../shared/reply/error-payload.ts';
import type { CancelCause } from '../../shared/reply/reply-channel.ts';
import { ownBuffer, type LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { findUnheardEnds, setPaused, type Hearing } from './find-unheard-ends.ts';
import { IncomingResults } from './incoming-results.ts';
import { acquireWhenOffered } from './response-memory.ts';
import type { Waiter, WaiterOwner } from './waiter.ts';
import { UnderWay } from './under-way.ts';
import { WorkerAbsence } from './worker-absence.ts';
import { WorkerControls, type WaiterControl } from './worker-controls.ts';

const checkIntervalMs = 1_000;
/** With no worker at all, a caller is told so after this time; a restart takes less. */
const noWorkerPatienceMs = 15_000;
/** A worker that lives and sends nothing of a result for so long, although it is asked again and again, has lost it. */
const resultPatienceMs = 30_000;

interface Entry extends Hearing {
  readonly waiter: Waiter;
  readonly owner: WaiterOwner;
}

/**
 * The process's one subscription to its reply channel. Frames of one attempt are counted: a gap means that the
 * stream has a hole, which ends it with an error and never goes unnoticed.
 */
export class ReplyWaiters {
  readonly channel: string;
  readonly #redis: RedisClient;
  readonly #subscriber: Subscriber;
  readonly #registry: WorkerRegistryStore;
  /** What answers may hold of this process until their callers have read them. */
  readonly #memory: FairBudget;
  readonly #log: Logger;
  readonly #waiters = new Map<string, Entry>();
  readonly #underWay = new UnderWay();
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
    subscriber.listen(this.channel, {
      onMessage: (message) => {
        for (const frame of decodeFrames(message)) this.#take(frame);
      },
      onLost: () => this.#letGo(),
    });
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

  add(waiter: Waiter, owner: WaiterOwner): void {
    if (!this.#subscriber.isListening(this.channel)) throw new AppError('service_unavailable');
    if (this.#waiters.size === 0) this.#absence.keep(new Set());
    this.#absence.await(waiter.queue);
    const { request } = waiter;
    this.#waiters.set(request.requestId, {
      waiter,
      owner,
      request,
      seenAtMs: this.#nowMs(),
      hasEnded: false,
      isPaused: false,
    });
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
    const entry = this.#waiters.get(waiter.request.requestId);
    if (entry !== undefined) setPaused(entry, action === 'pause', this.#nowMs());
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
    entry.seenAtMs = this.#nowMs();
    entry.hasEnded = false;
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

  /** What was sent meanwhile is gone, and with it perhaps the last frame of any request. A kept answer is read elsewhere. */
  #letGo(): void {
    for (const { waiter } of this.#waiters.values()) {
      if (!isKept(waiter.request)) this.fail(waiter, new AppError('service_unavailable'));
    }
  }

  async #endUnheard(): Promise<void> {
    // Of a result that is on its way it is known elsewhere whether it comes on.
    const awaited = [...this.#waiters.values()].filter(
      ({ request }) => !this.#results.has(request.requestId),
    );
    for (const { waiter, request } of await findUnheardEnds(this.#redis, awaited, this.#nowMs)) {
      if (isKept(request)) {
        this.remove(request.requestId);
      } else {
        this.#log.warn({ requestId: request.requestId }, 'the end of an answer was lost');
        this.fail(waiter, lostOnItsWay());
      }
    }
  }

  async #check(): Promise<void> {
    const hasWork = this.#waiters.size > 0 || this.#controls.hasUntold || this.#underWay.hasLeft;
    if (this.#checking || !hasWork) return;
    this.#checking = true;
    try {
      await this.#controls.tellUntold();
      await this.#endUnheard();
      const queues = this.#underWay.queuesOfLeft();
      for (const { waiter } of this.#waiters.values()) queues.add(waiter.queue);
      this.#absence.keep(queues);
      for (const queue of queues) this.#checkQueue(queue, await this.#registry.findAlive(queue));
      // After a trip to Redis: what came while this process stood still has been read by now.
      this.#results.remind();
    } catch (error) {
      this.#log.debug({ err: error }, 'the workers could not be looked up');
      this.#absence.forget();
    } finally {
      this.#checking = false;
    }
  }

  #checkQueue(queue: QueueName, alive: ReadonlySet<string>): void {
    const aloneForMs = this.#absence.measure(queue, alive);
    if (aloneForMs === null) return;
    this.#underWay.endLost(queue, alive);
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
