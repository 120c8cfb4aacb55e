import type { Pricing } from '../../contract/models.ts';
import { claimLifetimeSeconds } from '../../money/idempotency-claim.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import type { BatchQueueName } from '../jobs/job-line.ts';
import { batchConstants, maxBatchesPerAccount } from './batch-constants.ts';
import { parseBatch, type BatchFault, type BatchRecord } from './batch-record.ts';

const findScript = new LuaScript(new URL('./find-batches.lua', import.meta.url), ['prefix', 'accountId'], {
  itemNames: ['id'],
});
const listScript = new LuaScript(new URL('./list-batches.lua', import.meta.url), [
  'prefix',
  'accountId',
  'after',
  'count',
]);
const placeScript = new LuaScript(
  new URL('./place-batch.lua', import.meta.url),
  [
    'prefix',
    'reservations',
    'accountId',
    'id',
    'requestId',
    'maxUnfinished',
    'windowMs',
    'input',
    'queue',
    'model',
    'failure',
    'fieldsText',
    'retryOf',
  ],
  { constants: { ...batchConstants, claimLifetimeSeconds, maxBatchesPerAccount } },
);
const cancelScript = new LuaScript(
  new URL('./cancel-batch.lua', import.meta.url),
  ['prefix', 'accountId', 'id'],
  { constants: batchConstants },
);
const webhookScript = new LuaScript(new URL('../jobs/record-webhook.lua', import.meta.url), [
  'record',
  'report',
]);

/** The price of a model when a batch was created. */
export interface BatchPrice {
  readonly version: string;
  readonly pricing: Pricing;
}

/** The fields of a batch that are known when it is created. */
export interface NewBatch {
  readonly id: string;
  readonly accountId: string;
  /** The request that creates it, which has been admitted. */
  readonly requestId: string;
  readonly endpoint: string;
  readonly queue: BatchQueueName;
  /** The model that most lines name. */
  readonly model: string;
  /** The model in whose turns the lines are taken. */
  readonly turnModel: string;
  readonly windowMs: number;
  readonly inputFileId: string;
  /** The object with the lines, and its size. */
  readonly inputKey: string;
  readonly inputBytes: number;
  readonly lines: number;
  /** How many bytes of the file a worker takes at a time. */
  readonly sliceBytes: number;
  readonly maxCostNano: bigint | null;
  /** How long the result files are kept. */
  readonly resultLifetimeSeconds: number;
  /** By model. */
  readonly prices: Readonly<Record<string, BatchPrice>>;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly userIp: string;
  readonly webhookUrl: string | null;
  readonly publicUrl: string;
  /** The batch whose failed lines it has; null if they are new. */
  readonly retryOf: string | null;
  /** With these, the batch fails at once. */
  readonly faults: readonly BatchFault[];
}

export type PlacedBatch =
  | { readonly outcome: 'ok'; readonly createdAtMs: number; readonly weight: number }
  | { readonly outcome: 'too_many_batches'; readonly unfinished: number }
  /** Too many batches of the account that have ended are still kept. */
  | { readonly outcome: 'too_many_kept' }
  /** The input file is gone. */
  | { readonly outcome: 'no_file' }
  /** The same batch was retried before, as this batch. */
  | { readonly outcome: 'retried'; readonly id: string }
  /** The reservation is gone. */
  | { readonly outcome: 'gone' };

export type BatchCancellation =
  | { readonly outcome: 'unknown' | 'ended' }
  | {
      readonly outcome: 'cancelled';
      /** Where its remaining lines wait. Null if workers have all of them. */
      readonly line: {
        readonly queue: BatchQueueName;
        readonly model: string;
        readonly weight: number;
      } | null;
      /** The workers that have lines of it, which must be notified. */
      readonly workerIds: readonly string[];
    };

const valuesOf = (accountId: string) => ({ prefix: redisKeys.jobsOf(shardOf(accountId)), accountId });

type BatchReply = readonly [id: string, fields: readonly string[]];

function parseBatches(accountId: string, text: string): BatchRecord[] {
  return (JSON.parse(text) as BatchReply[]).flatMap(([id, pairs]) => {
    const fields: Record<string, string> = {};
    for (let i = 0; i + 1 < pairs.length; i += 2) fields[pairs[i]!] = pairs[i + 1]!;
    return parseBatch(accountId, id, fields) ?? [];
  });
}

/**
 * Creates, reads and cancels the batches of accounts. Each method takes one round trip to Redis.
 * @throws AppError `service_unavailable` while Redis is unavailable
 */
export class BatchStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Turns an admitted request into a batch, whose lines then wait for workers. */
  async place(batch: NewBatch, maxUnfinished: number): Promise<PlacedBatch> {
    const {
      accountId,
      id,
      requestId,
      windowMs,
      queue,
      turnModel: model,
      faults,
      webhookUrl,
      metadata,
    } = batch;
    const fields = {
      op: batch.endpoint,
      m: batch.model,
      key: batch.inputKey,
      size: String(batch.inputBytes),
      lines: String(batch.lines),
      sb: String(batch.sliceBytes),
      fl: String(batch.resultLifetimeSeconds),
      prices: JSON.stringify(batch.prices),
      ip: batch.userIp,
      pu: batch.publicUrl,
      ...(batch.maxCostNano !== null && { max: batch.maxCostNano.toString() }),
      ...(metadata !== null && { meta: JSON.stringify(metadata) }),
      ...(webhookUrl !== null && { url: webhookUrl }),
    };
    const values = {
      ...valuesOf(accountId),
      reservations: redisKeys.reservations(shardOf(accountId)),
      id,
      requestId,
      maxUnfinished,
      windowMs,
      input: batch.inputFileId,
      queue,
      model,
      failure: faults.length === 0 ? '' : JSON.stringify(faults),
      fieldsText: JSON.stringify(fields),
      retryOf: batch.retryOf ?? '',
    };
    const reply = (await callRedis(() => placeScript.run(this.#redis, values))) as PlaceReply;
    switch (reply[0]) {
      case 'ok':
        return { outcome: reply[0], createdAtMs: Number(reply[1]), weight: Number(reply[2]) };
      case 'too_many_batches':
        return { outcome: reply[0], unfinished: reply[1] };
      case 'retried':
        return { outcome: reply[0], id: reply[1] };
      default:
        return { outcome: reply[0] };
    }
  }

  /** Returns null if the account has no such batch. */
  async find(accountId: string, id: string): Promise<BatchRecord | null> {
    const [batch] = await this.findMany(accountId, [id]);
    return batch ?? null;
  }

  /** Finds the batches with these ids, in this order. Ids that the account has no batch for are skipped. */
  async findMany(accountId: string, ids: readonly string[]): Promise<readonly BatchRecord[]> {
    const items = ids.map((id) => ({ id }));
    const reply = await callRedis(() => findScript.run(this.#redis, valuesOf(accountId), items));
    return parseBatches(accountId, reply as string);
  }

  /**
   * Lists the account's batches, newest first.
   * @param after the batch before the page; null for the first page
   */
  async list(accountId: string, after: string | null, count: number): Promise<readonly BatchRecord[]> {
    const values = { ...valuesOf(accountId), after: after ?? '', count };
    const reply = await callRedis(() => listScript.run(this.#redis, values));
    return parseBatches(accountId, reply as string);
  }

  /** Stops running lines. Lines that run are finished and charged; all others are written to the error file. */
  async cancel(accountId: string, id: string): Promise<BatchCancellation> {
    const values = { ...valuesOf(accountId), id };
    const reply = (await callRedis(() => cancelScript.run(this.#redis, values))) as CancelReply;
    if (reply[0] !== 'cancelled') return { outcome: reply[0] };
    const [outcome, queue, model, weight, ...workerIds] = reply;
    const line = queue === '' ? null : { queue: queue as BatchQueueName, model, weight: Number(weight) };
    return { outcome, line, workerIds };
  }

  /** Records the state of the batch's webhook, as JSON. Does nothing if the batch no longer exists. */
  async recordWebhook(accountId: string, id: string, report: string): Promise<void> {
    const record = redisKeys.batch(accountId, id);
    await callRedis(() => webhookScript.run(this.#redis, { record, report }));
  }
}

type PlaceReply =
  | [outcome: 'ok', createdAtMs: string, weight: string]
  | [outcome: 'too_many_batches', unfinished: number]
  | [outcome: 'retried', id: string]
  | [outcome: 'too_many_kept' | 'no_file' | 'gone'];

type CancelReply =
  | [outcome: 'unknown' | 'ended']
  | [outcome: 'cancelled', queue: string, model: string, weight: string, ...workerIds: string[]];
