import { randomUUID } from 'node:crypto';
import { AppError } from '../../shared/contract/errors.ts';
import { chooseWindowMs, exceedsBatch, type BatchLimits } from '../../shared/queue/batch-window.ts';
import { chooseShareClass } from '../../shared/queue/fair-share.ts';
import type { EmbeddingJob, EmbeddingPart } from '../../shared/queue/job-kinds.ts';
import type { JobQueue } from '../../shared/queue/job-queue.ts';
import type { AwaitedJob, JobWaiting } from './dispatch-job.ts';

/** A batch that fills up is one vendor call or a few; its JSON stays small enough to be parsed in a few ms. */
const limits: BatchLimits = { windowMs: 1, maxWindowMs: 20, maxInputs: 64, maxBytes: 1_000_000 };

/** Where batches lie: those of accounts with much under way apart from the others. */
export interface EmbeddingQueues {
  readonly quick: JobQueue<EmbeddingJob>;
  readonly bulk: JobQueue<EmbeddingJob>;
}

interface OpenBatch {
  readonly model: string;
  readonly shareClass: number;
  readonly parts: EmbeddingPart[];
  readonly waiting: AwaitedJob[];
  inputs: number;
  bytes: number;
}

/**
 * Gathers embedding calls that reach this process within a few milliseconds and put them on the queue as one item, so
 * that the queue's cost is paid a batch and not a call. Only calls of one model and one class of work mix: what belongs to
 * an account with much under way waits behind what does not. A batch for each number of dimensions would let an account
 * that asks for many of them fill the queue.
 */
export class EmbeddingBatcher {
  readonly #queues: EmbeddingQueues;
  readonly #waiting: JobWaiting;
  readonly #open = new Map<string, OpenBatch>();
  readonly #underWay = new Map<string, number>();
  /** What of each account was asked for here and has no answer yet. */
  readonly #unanswered = new Map<string, { inputs: number; requests: number }>();

  constructor(queues: EmbeddingQueues, waiting: JobWaiting) {
    this.#queues = queues;
    this.#waiting = waiting;
  }

  add(part: EmbeddingPart): AwaitedJob {
    const job = this.#waiting.await(part.request, 'embedding');
    const shareClass = this.#count(part, job);
    const key = `${part.request.model}\n${shareClass}`;
    const size = {
      inputs: part.inputs.length,
      bytes: part.inputs.reduce((sum, text) => sum + text.length, 0),
    };
    let batch = this.#open.get(key);
    if (batch !== undefined && exceedsBatch(batch, size, limits)) {
      this.#close(key, batch);
      batch = undefined;
    }
    if (batch === undefined) {
      const { model } = part.request;
      batch = { model, shareClass, parts: [], waiting: [], inputs: 0, bytes: 0 };
      this.#open.set(key, batch);
      this.#closeLater(key, batch);
    }
    batch.parts.push(part);
    batch.waiting.push(job);
    batch.inputs += size.inputs;
    batch.bytes += size.bytes;
    return job;
  }

  /** What the account has under way with this one, as a class of work; until it is answered. */
  #count({ request, inputs }: EmbeddingPart, { answer }: AwaitedJob): number {
    const { accountId } = request;
    const sum = this.#unanswered.get(accountId) ?? { inputs: 0, requests: 0 };
    this.#unanswered.set(accountId, sum);
    sum.inputs += inputs.length;
    sum.requests += 1;
    const uncount = (): void => {
      sum.inputs -= inputs.length;
      sum.requests -= 1;
      if (sum.requests === 0) this.#unanswered.delete(accountId);
    };
    answer.then(uncount, uncount);
    return chooseShareClass(sum.inputs, sum.requests);
  }

  #closeLater(key: string, batch: OpenBatch): void {
    const windowMs = chooseWindowMs(this.#underWay.get(key) ?? 0, limits);
    // Even without a window, what arrived in the same turn of the event loop goes together.
    if (windowMs === 0) setImmediate(() => this.#close(key, batch));
    else setTimeout(() => this.#close(key, batch), windowMs);
  }

  #close(key: string, batch: OpenBatch): void {
    if (this.#open.get(key) === batch) this.#open.delete(key);
    if (batch.parts.length === 0) return;
    const parts = batch.parts.splice(0);
    const { model, shareClass, waiting } = batch;
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1);
    const done = (): void => {
      const left = (this.#underWay.get(key) ?? 1) - 1;
      if (left > 0) this.#underWay.set(key, left);
      else this.#underWay.delete(key);
    };
    Promise.allSettled(waiting.map((one) => one.answer)).then(done, done);
    const { replyChannel } = this.#waiting;
    const job: EmbeddingJob = { v: 1, kind: 'embedding', model, replyChannel, parts };
    const queue = shareClass === 0 ? this.#queues.quick : this.#queues.bulk;
    const added = queue.add(randomUUID(), job, shareClass);
    added.catch((error: unknown) => {
      const failure = error instanceof AppError ? error : new AppError('internal_error', { cause: error });
      for (const one of waiting) one.fail(failure);
    });
  }
}
