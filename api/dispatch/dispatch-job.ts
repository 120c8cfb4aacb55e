import type { FinishDependencies } from '../../shared/billing/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest, QueueName } from '../../shared/queue/job-kinds.ts';
import { CancelledStore } from '../../shared/queue/cancelled-store.ts';
import type { PayloadStore } from '../../shared/queue/payload-store.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { release } from './abandon-request.ts';
import type { ReplyWaiters, Waiter, WaiterOwner } from './reply-waiters.ts';

interface JobWaiter extends Waiter {
  readonly request: AdmittedRequest;
}

/** A request whose job is on one of BullMQ's queues, and whose whole answer is awaited. */
export interface AwaitedJob {
  readonly answer: Promise<Buffer>;
  /** The caller has gone. @returns whether it still waited */
  cancel(): boolean;
  /** The job never came to lie on its queue. */
  fail(error: AppError): void;
}

/** Waits for the answers of durable jobs. A job whose worker dies is run again by BullMQ, so waiting simply goes on. */
export class JobWaiting implements WaiterOwner {
  readonly #dependencies: FinishDependencies;
  readonly #payloads: PayloadStore;
  readonly #waiters: ReplyWaiters;
  readonly #cancelled: CancelledStore;
  readonly #log: Logger;

  constructor(dependencies: FinishDependencies, payloads: PayloadStore, waiters: ReplyWaiters, log: Logger) {
    this.#dependencies = dependencies;
    this.#payloads = payloads;
    this.#waiters = waiters;
    this.#cancelled = new CancelledStore(dependencies.redis);
    this.#log = log;
  }

  get replyChannel(): string {
    return this.#waiters.channel;
  }

  await(request: AdmittedRequest, queue: QueueName): AwaitedJob {
    let settle: { resolve: (bytes: Buffer) => void; reject: (error: unknown) => void };
    const answer = new Promise<Buffer>((resolve, reject) => {
      settle = { resolve, reject };
    });
    const waiter: JobWaiter = {
      request,
      requestId: request.requestId,
      queue,
      deadlineAtMs: request.deadlineAtMs,
      attempt: 0,
      workerId: null,
      received: 0,
      hasOutput: false,
      tokens: 0,
      receiver: {
        delta: () => undefined,
        end: (result) => {
          if ('bytes' in result) settle.resolve(result.bytes);
          else this.#takeStored(result.stored).then(settle.resolve, settle.reject);
        },
        fail: (error) => settle.reject(error),
      },
    };
    try {
      this.#waiters.add(waiter, this);
    } catch (error) {
      release(this.#dependencies, request, this.#log);
      throw error;
    }
    return {
      answer,
      cancel: () => {
        this.#tellCancelled(waiter);
        settle.reject(new AppError('job_cancelled'));
        return this.#waiters.remove(request.requestId);
      },
      fail: (error) => {
        release(this.#dependencies, request, this.#log);
        this.#waiters.fail(waiter, error);
      },
    };
  }

  /** A worker that has the request is told at once; one that takes it later finds the mark. */
  #tellCancelled(waiter: JobWaiter): void {
    if (waiter.workerId !== null) {
      this.#waiters.control(waiter, 'cancel');
      return;
    }
    this.#cancelled.add(waiter.requestId).catch((error: unknown) => {
      this.#log.debug({ requestId: waiter.requestId, err: error }, 'a queued request could not be cancelled');
    });
  }

  check(): void {
    // BullMQ notices a dead worker by its lock and gives the job to another.
  }

  abandon(waiter: JobWaiter): void {
    release(this.#dependencies, waiter.request, this.#log);
  }

  async #takeStored(id: string): Promise<Buffer> {
    const bytes = await this.#payloads.take(id);
    if (bytes === null)
      throw new AppError('service_unavailable', { message: 'The answer was lost on its way.' });
    return bytes;
  }
}
