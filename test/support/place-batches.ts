import { runAdmission } from '../../shared/money/admit-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { BatchStore, type NewBatch, type PlacedBatch } from '../../shared/work/batches/batch-store.ts';
import { createFileId } from '../../shared/work/files/file-id.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import { admission } from './billing.ts';

/** Where placed batches wait by default. */
export const batchLine = { queue: 'batch-embedding', model: 'vectors' } as const;

/** Places a batch of 25 lines in three slices, without an api. Its input exists only in Redis. */
export async function placeBatch(
  redis: RedisClient,
  accountId: string,
  changes: Partial<NewBatch> = {},
  maxUnfinished = 100,
): Promise<{ readonly batch: NewBatch; readonly placed: PlacedBatch }> {
  const keyHash = (await redis.hget(redisKeys.account(accountId), 'key'))!;
  const request = admission(accountId, { keyHash, fixedNano: 1_000n });
  await runAdmission(redis, request);
  const { requestId } = request;
  const inputFileId = createFileId(Date.now(), 3_600);
  const file = {
    id: inputFileId,
    name: 'lines.jsonl',
    purpose: 'batch',
    key: 'input-key',
    byteLength: 250,
    verdict: null,
  } as const;
  await new FileStore(redis).create(accountId, file, { maxFiles: 100, maxBytes: 1_000_000 });
  const batch: NewBatch = {
    id: `batch_${requestId}`,
    accountId,
    requestId,
    endpoint: '/v1/embeddings',
    ...batchLine,
    turnModel: batchLine.model,
    windowMs: 24 * 60 * 60_000,
    inputFileId,
    inputKey: 'input-key',
    inputBytes: 250,
    lines: 25,
    sliceBytes: 100,
    maxCostNano: null,
    resultLifetimeSeconds: 30 * 24 * 60 * 60,
    prices: {},
    metadata: { team: 'search' },
    userIp: '127.0.0.1',
    webhookUrl: null,
    publicUrl: '',
    retryOf: null,
    faults: [],
    ...changes,
  };
  return { batch, placed: await new BatchStore(redis).place(batch, maxUnfinished) };
}
