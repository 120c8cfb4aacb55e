import type { Redis } from 'ioredis';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import type { RedisClient } from './redis-client.ts';

/**
 * Returns the policy by which Redis deletes keys when its memory is full, if it does; null if it refuses writes instead.
 * Reads it from `INFO`, because managed servers refuse `CONFIG GET`. Null if the user may not read that either.
 */
export async function findEvictionPolicy(redis: RedisClient): Promise<string | null> {
  const servers: readonly Pick<Redis, 'info'>[] = 'nodes' in redis ? redis.nodes('master') : [redis];
  const policies = await Promise.all(servers.map(readPolicy));
  return policies.find((policy) => policy !== null && policy !== 'noeviction') ?? null;
}

async function readPolicy(server: Pick<Redis, 'info'>): Promise<string | null> {
  const text = await server.info('memory').catch(() => '');
  return /^maxmemory_policy:(\S+)/m.exec(text)?.[1] ?? null;
}

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
