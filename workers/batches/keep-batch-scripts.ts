import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { batchConstants } from '../../shared/work/batches/batch-constants.ts';
import type { BatchQueueName } from '../../shared/work/jobs/job-line.ts';
import type { BatchStatus } from '../../shared/work/batches/batch-record.ts';

/** Maximum number of due items per script execution, so that it stays short. */
const maxPerScript = 64;

const recoverScript = new LuaScript(new URL('./recover-slices.lua', import.meta.url), ['prefix'], {
  constants: { ...batchConstants, maxPerScript },
});
const wakeScript = new LuaScript(new URL('./wake-batches.lua', import.meta.url), ['prefix'], {
  constants: { ...batchConstants, maxPerScript },
});
const hooksScript = new LuaScript(new URL('./find-batch-hooks.lua', import.meta.url), ['prefix'], {
  constants: { maxPerScript },
});
const deleteScript = new LuaScript(new URL('./delete-ended-batches.lua', import.meta.url), ['prefix'], {
  constants: { ...batchConstants, maxPerScript },
});

/** A batch whose lines can be taken again. */
export interface WokenBatch {
  readonly accountId: string;
  readonly batchId: string;
  readonly queue: BatchQueueName;
  readonly model: string;
  readonly weight: number;
  /** The workers that have lines of it and must be notified that it is stopping. */
  readonly workerIds: readonly string[];
}

type WokenReply = [
  accountId: string,
  batchId: string,
  BatchQueueName,
  model: string,
  weight: string,
  ...string[],
];

const parseWoken = (reply: unknown): WokenBatch[] =>
  (reply as WokenReply[]).map(([accountId, batchId, queue, model, weight, ...workerIds]) => ({
    accountId,
    batchId,
    queue,
    model,
    weight: Number(weight),
    workerIds,
  }));

/** Takes slices from workers that went silent. */
export async function recoverSlices(redis: RedisClient, shard: number): Promise<WokenBatch[]> {
  return parseWoken(await callRedis(() => recoverScript.run(redis, { prefix: redisKeys.jobsOf(shard) })));
}

/** Ends the pauses that are over, and stops batches whose windows are over. */
export async function wakeBatches(redis: RedisClient, shard: number): Promise<WokenBatch[]> {
  return parseWoken(await callRedis(() => wakeScript.run(redis, { prefix: redisKeys.jobsOf(shard) })));
}

/** Deletes batches that ended long ago. @returns whether there may be more */
export async function deleteEndedBatches(redis: RedisClient, shard: number): Promise<boolean> {
  const deleted = await callRedis(() => deleteScript.run(redis, { prefix: redisKeys.jobsOf(shard) }));
  return (deleted as number) === maxPerScript;
}

/** A batch whose webhook must be queued. */
export interface DueBatchHook {
  readonly accountId: string;
  readonly batchId: string;
  readonly url: string;
  readonly status: BatchStatus;
}

export async function findBatchHooks(redis: RedisClient, shard: number): Promise<DueBatchHook[]> {
  const reply = await callRedis(() => hooksScript.run(redis, { prefix: redisKeys.jobsOf(shard) }));
  return (reply as [string, string, string, BatchStatus][]).map(([accountId, batchId, url, status]) => ({
    accountId,
    batchId,
    url,
    status,
  }));
}

/** Records that the batch's webhook has been queued. */
export async function markBatchHookQueued(
  redis: RedisClient,
  { accountId, batchId }: Pick<DueBatchHook, 'accountId' | 'batchId'>,
): Promise<void> {
  await callRedis(() => redis.zrem(redisKeys.batchHooks(shardOf(accountId)), `${accountId} ${batchId}`));
}
