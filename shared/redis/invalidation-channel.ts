import { redisChannels } from './redis-keys.ts';
import { callRedis, type RedisClient } from './redis-client.ts';
import type { Subscriber } from './subscriber-client.ts';

/** What changed: an account (its key, limits, ban) or the set of disabled models. */
export type Invalidation =
  { readonly kind: 'account'; readonly accountId: string } | { readonly kind: 'models' };

export async function publishInvalidation(redis: RedisClient, change: Invalidation): Promise<void> {
  await callRedis(() => redis.spublish(redisChannels.invalidation, JSON.stringify(change)));
}

/**
 * Calls back for every change anywhere; `null` when changes may have been missed, because the subscription was lost:
 * then everything cached must go.
 */
export function listenToInvalidations(
  subscriber: Subscriber,
  onChange: (change: Invalidation | null) => void,
): void {
  subscriber.listen(redisChannels.invalidation, {
    onMessage: (message) => onChange(JSON.parse(message.toString('utf8')) as Invalidation),
    onLost: () => onChange(null),
    onRestored: () => onChange(null),
  });
}
