import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';

/** A request is looked up when nothing has been heard of it for so long. */
const lookAfterMs = 5_000;

/** When something was last heard of a request. */
export interface Hearing {
  readonly request: AdmittedRequest;
  /** When the last frame came, or the last look was. */
  seenAtMs: number;
  /** The last look found that it holds no reservation any more. */
  hasEnded: boolean;
  /** Its caller does not read just now, so its worker sends nothing, whether or not it is settled. */
  isPaused: boolean;
}

/** A caller who reads again, or has just stopped, is heard of anew. */
export function setPaused(hearing: Hearing, isPaused: boolean, nowMs: number): void {
  hearing.isPaused = isPaused;
  hearing.hasEnded = false;
  hearing.seenAtMs = nowMs;
}

/**
 * A request that holds no reservation any more has ended. Its last frame is sent right afterwards: where it has not come by
 * the next look, it was lost on its way, whatever the reason.
 * @returns those of which nothing more will come
 */
export async function findUnheardEnds<H extends Hearing>(
  redis: RedisClient,
  hearings: readonly H[],
  nowMs: () => number,
): Promise<H[]> {
  const look = async (hearing: H): Promise<boolean> => {
    const { request, seenAtMs, hasEnded } = hearing;
    const reservations = redisKeys.reservations(shardOf(request.accountId));
    // While one node of a Cluster is away, the requests of the others are looked up all the same.
    const isHeld = await redis.hexists(reservations, request.requestId).catch(() => null);
    if (isHeld === null || hearing.seenAtMs !== seenAtMs) return false;
    hearing.seenAtMs = nowMs();
    hearing.hasEnded = isHeld === 0;
    return hasEnded && hearing.hasEnded;
  };
  const silent = hearings.filter(({ seenAtMs, isPaused }) => !isPaused && nowMs() - seenAtMs >= lookAfterMs);
  const ended = await Promise.all(silent.map(look));
  return silent.filter((_, i) => ended[i]);
}
