import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';

export interface MemoryReading {
  readonly usedBytes: number;
  /** Body size of the account's first job. All jobs are alike. 0 if there is none. */
  readonly bodyBytes: number;
  readonly responseBytes: number;
}

/** Reads Redis's total memory and the size of the parts of one job. */
export async function readMemory(redis: RedisClient, accountId: string): Promise<MemoryReading> {
  const [id = ''] = await redis.zrange(redisKeys.jobsList(accountId, 'all'), '0', '0');
  const [info, bodyBytes, responseBytes] = await Promise.all([
    redis.info('memory'),
    redis.strlen(redisKeys.jobBody(accountId, id)),
    redis.strlen(redisKeys.storedFrames(accountId, id)),
  ]);
  return { usedBytes: Number(/^used_memory:(\d+)/m.exec(info)?.[1]), bodyBytes, responseBytes };
}
