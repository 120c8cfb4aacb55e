import { redisChannels } from './redis-keys.ts';
import { callRedis, type RedisClient } from './redis-client.ts';

/** What changed: an account (its key, limits, ban) or the set of disabled models. */
export type Invalidation =
  { readonly kind: 'account'; readonly accountId: string } | { readonly kind: 'models' };

const ownChannel = Buffer.from(redisChannels.invalidation);

export async function publishInvalidation(redis: RedisClient, change: Invalidation): Promise<void> {
  await callRedis(() => redis.publish(redisChannels.invalidation, JSON.stringify(change)));
}

/**
 * Calls back for every change anywhere; `null` when changes may have been missed, because the subscription was cut:
 * then everything cached must go.
 */
export async function subscribeToInvalidations(
  subscriber: RedisClient,
  onChange: (change: Invalidation | null) => void,
): Promise<void> {
  // As bytes: with one listener for text, every reply that comes over this connection would be decoded as text too.
  subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    if (channel.equals(ownChannel)) onChange(JSON.parse(message.toString('utf8')) as Invalidation);
  });
  subscriber.on('close', () => onChange(null));
  subscriber.on('ready', () => onChange(null));
  await subscriber.subscribe(redisChannels.invalidation);
}
