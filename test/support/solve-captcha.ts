import type { StoredChallenge } from '../../api/account-area/captcha/captcha-store.ts';
import { imageHeight, imageWidth, type Point } from '../../api/account-area/captcha/place-icons.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';

/** The right clicks for a captcha, in API coordinates, computed from the solution in Redis. */
export async function solveCaptcha(redis: RedisClient, challengeId: string): Promise<Point[]> {
  const { solution } = JSON.parse((await redis.get(redisKeys.captcha(challengeId)))!) as StoredChallenge;
  return solution.map(({ x, y }) => ({ x: (x / imageWidth) * 10_000, y: (y / imageHeight) * 10_000 }));
}
