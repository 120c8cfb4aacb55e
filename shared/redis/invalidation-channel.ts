import { redisChannels } from './redis-keys.ts';
import type { RedisClient } from './redis-client.ts';

/** What changed: an account (its key, limits, ban) or the set of disabled models. */
export type Invalidation =
  { readonly kind: 'account'; readonly accountId: string } | { readonly kind: 'models' };

export async function publishInvalidation(redis: RedisClient, change: Invalidation): Promise<void> {
  await redis.publish(redisChannels.invalidation, JSON.stringify(change));
}

/**
 * Calls back for every change anywhere; `null` when changes may have been missed, because the subscription was cut:
 * then everything cached must go.
 */
export async function subscribeToInvalidations(
  subscriber: RedisClient,
  onChange: (change: Invalidation | null) => void,
): Promise<void> {
  subscriber.on('message', (channel: string, message: string) => {
    if (channel === redisChannels.invalidation) onChange(JSON.parse(message) as Invalidation);
  });
  subscriber.on('close', () => onChange(null));
  subscriber.on('ready', () => onChange(null));
  await subscriber.subscribe(redisChannels.invalidation);
}
