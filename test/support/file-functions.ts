import { readFileSync } from 'node:fs';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';

const functions = ['platform/redis/clock.lua', 'platform/redis/whole.lua', 'work/files/file-functions.lua']
  .map((path) => readFileSync(`shared/${path}`, 'utf8'))
  .join('\n');

/** Runs a function of `file-functions.lua` on a file, as scripts of batches do. */
export async function runFileFunction(
  redis: RedisClient,
  accountId: string,
  name: string,
  ...args: (string | number)[]
): Promise<unknown> {
  const values = [accountId, ...args].map((_, i) => `ARGV[${i + 1}]`);
  const text = `local prefix = KEYS[1] ${functions} return ${name}(${values.join(', ')})`;
  return await redis.eval(text, 1, redisKeys.filesOf(shardOf(accountId)), accountId, ...args);
}
