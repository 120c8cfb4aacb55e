import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import type { RedisClient } from './redis-client.ts';
import { readRedisMemory } from './redis-memory.ts';

/**
 * Returns the policy by which Redis deletes keys when its memory is full, if it does; null if it refuses writes instead.
 * Null if the user may not read it.
 */
export async function findEvictionPolicy(redis: RedisClient): Promise<string | null> {
  const servers = await readRedisMemory(redis);
  return servers.map(({ policy }) => policy).find(isEvicting) ?? null;
}

/** Whether Redis deletes keys by this policy when its memory is full. Null means that the policy is unknown. */
export const isEvicting = (policy: string | null): policy is string =>
  policy !== null && policy !== 'noeviction';

/**
 * Reports a Redis that may delete balances, reservations and jobs when its memory is full.
 * @throws ConfigError in production
 */
export async function checkEviction(
  redis: RedisClient,
  log: Pick<Logger, 'error'>,
  { isProduction }: { readonly isProduction: boolean },
): Promise<void> {
  const policy = await findEvictionPolicy(redis);
  if (policy === null) return;
  const text =
    `Redis has maxmemory-policy ${policy}: when its memory is full, it deletes balances, reservations and jobs. ` +
    'Set maxmemory-policy to noeviction.';
  if (isProduction) throw new ConfigError(text);
  log.error({ policy }, text);
}
