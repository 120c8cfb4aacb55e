import { redisChannels } from './redis-keys.ts';
import { callRedis, type RedisClient } from './redis-client.ts';
import type { Subscriber } from './subscriber-client.ts';

/** What changed: an account (its key, limits or ban), or the set of disabled models. */
export type Invalidation =
  | { readonly kind: 'account'; readonly accountId: string }
  | { readonly kind: 'models' };

export async function publishInvalidation(redis: RedisClient, change: Invalidation): Promise<void> {
  await callRedis(() => redis.spublish(redisChannels.invalidation, JSON.stringify(change)));
}

/**
 * Calls `onChange` for every change made by any process. `null` means that the subscription was lost and changes may
 * have been missed, so drop everything cached.
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
