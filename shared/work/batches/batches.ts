import { AppError } from '../../contract/errors.ts';
import { batchWindowMs } from '../../contract/batch-terms.ts';
import type { AdmittedRequest } from '../../money/admitted-request.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import type { Logger } from '../../platform/runtime/logger.ts';
import type { BatchRecord } from './batch-record.ts';
import { BatchStore, type NewBatch, type PlacedBatch } from './batch-store.ts';
import { JobTurns } from '../jobs/job-turns-store.ts';
import { sendControl } from '../replies/worker-control.ts';
import { releaseReservation } from '../settlement/settle-script.ts';

/** The admitted request that creates a batch. */
export type CreationRequest = Pick<AdmittedRequest, 'accountId' | 'requestId' | 'userIp' | 'claimHash'>;

/** The fields of a batch that its caller and its input determine. */
export type BatchWork = Omit<NewBatch, 'id' | 'accountId' | 'requestId' | 'windowMs' | 'userIp'>;

/** Creates and cancels batches, and finds them. */
export class Batches {
  readonly #redis: RedisClient;
  readonly #store: BatchStore;
  readonly #turns: JobTurns;
  readonly #maxUnfinished: number;
  readonly #log: Logger;

  /** @param maxUnfinished batches of an account */
  constructor(redis: RedisClient, maxUnfinished: number, log: Logger) {
    this.#redis = redis;
    this.#store = new BatchStore(redis);
    this.#turns = new JobTurns(redis);
    this.#maxUnfinished = maxUnfinished;
    this.#log = log;
  }

  /**
   * Turns an admitted request into a batch. Its reservation ends.
   * @throws AppError `too_many_jobs`, `not_found` if the input file is gone, `validation_failed` if it retries a batch that
   * was retried before, `service_unavailable`
   */
  async create(request: CreationRequest, work: BatchWork): Promise<BatchRecord> {
    const { accountId, requestId, userIp } = request;
    const id = toBatchId(requestId);
    const batch = { ...work, id, accountId, requestId, windowMs: batchWindowMs, userIp };
    const placed = await this.#store.place(batch, this.#maxUnfinished);
    if (placed.outcome !== 'ok' && placed.outcome !== 'gone') {
      await releaseReservation(this.#redis, request);
      throw this.#toError(placed);
    }
    if (placed.outcome === 'ok' && work.faults.length === 0) {
      const line = { queue: work.queue, model: work.turnModel };
      // If this fails, a worker repairs the index from the account's list.
      await this.#turns.add(line, accountId, placed.weight).catch((error: unknown) => {
        this.#log.warn({ batchId: id, err: error }, 'a batch was not announced to workers yet');
      });
    }
    const created = await this.#store.find(accountId, id);
    if (created === null) throw new AppError('service_unavailable', { message: 'the batch was not created' });
    return created;
  }

  #toError(placed: PlacedBatch): AppError {
    switch (placed.outcome) {
      case 'too_many_batches':
        return new AppError('too_many_jobs', {
          message:
            `This account has ${placed.unfinished} unfinished batches, and may have ${this.#maxUnfinished}. ` +
            'Wait until one has ended, or cancel one.',
        });
      case 'too_many_kept':
        return new AppError('too_many_jobs', {
          message:
            'This account has too many batches that ended within the last 31 days. Use larger batches.',
        });
      case 'no_file':
        return noSuchInput();
      case 'retried':
        return wasRetried(placed.id);
      default:
        return new AppError('internal_error', { message: `a batch was not created: ${placed.outcome}` });
    }
  }

  /** Returns null if the account has no such batch. */
  async find(accountId: string, id: string): Promise<BatchRecord | null> {
    return await this.#store.find(accountId, id);
  }

  /** Newest first. @param after the batch before the page; null for the first page */
  async list(accountId: string, after: string | null, count: number): Promise<readonly BatchRecord[]> {
    return await this.#store.list(accountId, after, count);
  }

  /**
   * Stops a batch. Lines that run are finished.
   * @returns false if the account has no such batch
   */
  async cancel(accountId: string, id: string): Promise<boolean> {
    const cancellation = await this.#store.cancel(accountId, id);
    if (cancellation.outcome !== 'cancelled') return cancellation.outcome === 'ended';
    const { line, workerIds } = cancellation;
    if (line !== null) await this.#turns.add(line, accountId, line.weight);
    const notify = (workerId: string) => sendControl(this.#redis, workerId, { action: 'check-batches' });
    await Promise.all(workerIds.map(notify));
    return true;
  }
}

/** A batch is found by the request that created it. */
export const toBatchId = (requestId: string): string => `batch_${requestId.replaceAll('-', '')}`;

/** The failed lines of a batch run again only once, so that a repeated call does not pay for them twice. */
export const wasRetried = (id: string): AppError =>
  new AppError('validation_failed', {
    message: `The batch was retried before, as ${id}. Lines that failed again are in the error file of that batch: retry it instead.`,
    messageRu: `Этот пакет уже повторён как ${id}. Строки, которые снова не удались, — в файле ошибок того пакета: повторите его.`,
  });

export const noSuchInput = (): AppError =>
  new AppError('not_found', {
    message:
      'This account has no such file. Upload it with POST /v1/files and purpose "batch"; GET /v1/files lists the files.',
    messageRu:
      'В этом аккаунте нет такого файла. Загрузите его через POST /v1/files с purpose "batch". Список файлов: GET /v1/files.',
    issues: [{ loc: ['body', 'input_file_id'], msg: 'No such file.', type: 'not_found' }],
  });
