// decision 0010
import { randomUUID } from 'node:crypto';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { chooseWindowMs, exceedsBatch, type BatchLimits } from './batch-window.ts';
import { chooseShareClass } from '../../../shared/work/queue/fair-share.ts';
import type { EmbeddingJob, EmbeddingPart } from '../../../shared/work/queue/job-kinds.ts';
import type { JobQueue } from './job-queue.ts';
import type { BulkShares } from './bulk-shares.ts';
import type { AwaitedJob, JobDispatcher } from './job-dispatcher.ts';

/** A full batch needs one or a few vendor calls. Its JSON is small enough to parse in a few ms. */
const limits: BatchLimits = { windowMs: 1, maxWindowMs: 20, maxInputs: 64, maxBytes: 1_000_000 };

/** The queues for batches. Accounts with a lot of work in flight use the bulk queue. */
export interface EmbeddingQueues {
  readonly quick: JobQueue<EmbeddingJob>;
  readonly bulk: JobQueue<EmbeddingJob>;
}

/** Shared, because creating an error for each batch would capture a stack that nobody reads. */
const batchEnded = new AppError('job_cancelled');

interface OpenBatch {
  readonly key: string;
  readonly model: string;
  readonly shareClass: number;
  readonly parts: { readonly part: EmbeddingPart; readonly job: AwaitedJob }[];
  inputs: number;
  bytes: number;
  unendedParts: number;
  /** Aborted once all parts have ended. */
  readonly ended: AbortController;
}

/**
 * Combines embedding calls that reach this process within a few milliseconds into one queue item, so that the queue's
 * overhead is paid once per batch instead of once per call. All calls of a batch have the same model and the same share
 * class, which depends on how much work their accounts have in flight. An account with a lot of work in flight gets
 * separate batches, which wait behind those of other accounts and fill up in the meantime. Calls for different numbers
 * of dimensions may share a batch. Otherwise, an account that uses many different numbers could fill the queue.
 */
export class EmbeddingBatcher {
  readonly #queues: EmbeddingQueues;
  readonly #shares: BulkShares;
  readonly #jobs: JobDispatcher;
  readonly #open = new Map<string, OpenBatch>();
  readonly #inFlight = new Map<string, number>();
  /** Inputs and requests in progress here, by account. */
  readonly #sums = new Map<string, { inputs: number; requests: number }>();

  constructor(queues: EmbeddingQueues, shares: BulkShares, jobs: JobDispatcher) {
    this.#queues = queues;
    this.#shares = shares;
    this.#jobs = jobs;
  }

  add(part: EmbeddingPart): AwaitedJob {
    const job = this.#jobs.await(part.request, 'embedding');
    const { accountId, model } = part.request;
    const shareClass = this.#trackPart(part, job);
    const key = `${model}\n${shareClass}\n${shareClass === 0 ? '' : accountId}`;
    const size = {
      inputs: part.inputs.length,
      bytes: part.inputs.reduce((sum, text) => sum + text.length, 0),
    };
    let batch = this.#open.get(key);
    if (batch !== undefined && exceedsBatch(batch, size, limits)) {
      this.#close(batch);
      batch = undefined;
    }
    if (batch === undefined) {
      batch = {
        key,
        model,
        shareClass,
        parts: [],
        inputs: 0,
        bytes: 0,
        unendedParts: 0,
        ended: new AbortController(),
      };
      this.#open.set(key, batch);
      this.#dispatchLater(batch);
    }
    this.#addPart(batch, part, job);
    batch.inputs += size.inputs;
    batch.bytes += size.bytes;
    return job;
  }

  /** Adds a part to the account's work in flight. @returns the share class of that work, including this part */
  #trackPart({ request, inputs }: EmbeddingPart, job: AwaitedJob): number {
    const { accountId } = request;
    const sum = this.#sums.get(accountId) ?? { inputs: 0, requests: 0 };
    this.#sums.set(accountId, sum);
    sum.inputs += inputs.length;
    sum.requests += 1;
    job.whenEnded(() => {
      sum.inputs -= inputs.length;
      sum.requests -= 1;
      if (sum.requests === 0) this.#sums.delete(accountId);
    });
    return chooseShareClass(sum.inputs, sum.requests);
  }

  #addPart(batch: OpenBatch, part: EmbeddingPart, job: AwaitedJob): void {
    batch.parts.push({ part, job });
    batch.unendedParts += 1;
    job.whenEnded(() => {
      batch.unendedParts -= 1;
      if (batch.unendedParts > 0) return;
      this.#close(batch);
      batch.ended.abort(batchEnded);
    });
  }

  /** Stops adding parts to the batch. */
  #close(batch: OpenBatch): void {
    if (this.#open.get(batch.key) === batch) this.#open.delete(batch.key);
  }

  #dispatchLater(batch: OpenBatch): void {
    const windowMs = chooseWindowMs(this.#inFlight.get(batch.key) ?? 0, limits);
    const dispatch = (): void => {
      this.#dispatch(batch).catch((error: unknown) => this.#fail(batch, error));
    };
    // Even if the window is zero, parts that arrive in the same iteration of the event loop share a batch.
    if (windowMs === 0) setImmediate(dispatch);
    else setTimeout(dispatch, windowMs);
  }

  /** Enqueues a batch, once its account has a share of the workers' bulk capacity if it needs one. */
  async #dispatch(batch: OpenBatch): Promise<void> {
    const { shareClass, ended } = batch;
    const [first] = batch.parts;
    if (shareClass > 0 && first !== undefined) {
      // Here the batch waits without a deadline, because each of its requests has its own.
      const { accountId, model } = first.part.request;
      const countRequests = (): number => batch.unendedParts;
      const work = { accountId, model, deadlineAtMs: Infinity, countRequests };
      await this.#shares.enter('embedding', work, ended.signal).granted;
    }
    this.#close(batch);
    await this.#enqueue(batch);
  }

  #fail(batch: OpenBatch, error: unknown): void {
    this.#close(batch);
    const failure = toAppError(error);
    for (const { job } of batch.parts) job.fail(failure);
  }

  async #enqueue({ key, model, shareClass, parts, ended }: OpenBatch): Promise<void> {
    const queued = parts.filter(({ job }) => job.markQueued());
    if (queued.length === 0) return;
    const jobId = randomUUID();
    const queue = shareClass === 0 ? this.#queues.quick : this.#queues.bulk;
    dropWhenAllDisconnected(queue, jobId, queued);
    this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
    const done = (): void => {
      const remaining = (this.#inFlight.get(key) ?? 1) - 1;
      if (remaining > 0) this.#inFlight.set(key, remaining);
      else this.#inFlight.delete(key);
    };
    ended.signal.addEventListener('abort', done, { once: true });
    const { replyChannel } = this.#jobs;
    const job: EmbeddingJob = {
      v: 1,
      kind: 'embedding',
      model,
      replyChannel,
      parts: queued.map(({ part }) => part),
    };
    await queue.add(jobId, job, shareClass);
  }
}

/**
 * Drops the payload once all callers have disconnected. Otherwise it would stay in Redis until a worker takes the job.
 */
function dropWhenAllDisconnected(
  queue: JobQueue<EmbeddingJob>,
  jobId: string,
  parts: OpenBatch['parts'],
): void {
  let connected = parts.length;
  for (const { job } of parts) {
    job.whenDisconnected(() => {
      connected -= 1;
      if (connected === 0) queue.dropPayload(jobId);
    });
  }
}
