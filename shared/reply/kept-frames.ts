import { claimLifetimeSeconds } from '../billing/claim.ts';
import type { RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { encodeFrame, type Frame, type FrameKind } from './frame.ts';

/** Longer than what names it, so that nobody finds half of an answer. */
const lifetimeSeconds = claimLifetimeSeconds + 60 * 60;

/** Adds a frame to the stream that keeps a request's answer. */
export async function keepFrameBytes(
  redis: RedisClient,
  requestId: string,
  kind: FrameKind,
  bytes: Buffer,
): Promise<void> {
  const stream = redisKeys.keptFrames(requestId);
  await Promise.all([
    redis.xadd(stream, '*', 'frame', bytes),
    ...(kind === 'delta' ? [] : [redis.expire(stream, lifetimeSeconds)]),
  ]);
}

export async function keepFrame(redis: RedisClient, frame: Frame): Promise<void> {
  await keepFrameBytes(redis, frame.requestId, frame.kind, encodeFrame(frame));
}
