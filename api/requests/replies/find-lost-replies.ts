// decision 0059
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';

/** A request is checked when no frame has arrived for this long. */
const checkAfterMs = 5_000;

/**
 * The last frame of a request is sent immediately after its settlement, which ends its reservation. If a check finds no
 * reservation and the last frame has not arrived by the next check, the frame is lost.
 */
export const checksUntilLost = 2;
/**
 * The same for work that runs again if its worker dies right after the settlement: once the lock has expired, which
 * BullMQ checks every half of its duration. The new run delivers the response that was charged.
 */
export const checksUntilRerunIsLost =
  checksUntilLost + Math.ceil((1.5 * liveness.queueItem.deadMs) / checkAfterMs);

/** Tracks when the last frame of a request arrived. */
export interface ReplyLiveness {
  readonly request: AdmittedRequest;
  /** Time of the last frame or the last check. */
  lastActivityAtMs: number;
  /** Consecutive checks that found no reservation, which means that the request has ended. */
  checksWithoutReservation: number;
  /** Number of consecutive checks without a reservation after which no more frames are expected. */
  readonly checksUntilLost: number;
  /** Whether the caller is not reading. The worker then sends nothing, whether or not the request is settled. */
  isPaused: boolean;
}

/** Restarts the silence timer when a caller pauses or resumes reading. */
export function setPaused(reply: ReplyLiveness, isPaused: boolean, nowMs: number): void {
  reply.isPaused = isPaused;
  reply.checksWithoutReservation = 0;
  reply.lastActivityAtMs = nowMs;
}

/** Well below the maximum number of arguments of a Redis command. */
const idsPerCommand = 1_000;

/**
 * Finds the requests whose remaining frames were lost. A request without a reservation has ended, so frames that have
 * not arrived after enough checks were lost in transit.
 * @returns the replies that will get no more frames
 */
export async function findLostReplies<R extends ReplyLiveness>(
  redis: RedisClient,
  replies: readonly R[],
  nowMs: () => number,
): Promise<R[]> {
  const byShard = new Map<number, R[]>();
  for (const reply of replies) {
    if (reply.isPaused || nowMs() - reply.lastActivityAtMs < checkAfterMs) continue;
    const shard = shardOf(reply.request.accountId);
    const silent = byShard.get(shard);
    if (silent === undefined) byShard.set(shard, [reply]);
    else silent.push(reply);
  }
  const checks: Promise<R[]>[] = [];
  for (const [shard, silent] of byShard) {
    for (let from = 0; from < silent.length; from += idsPerCommand)
      checks.push(checkShard(redis, shard, silent.slice(from, from + idsPerCommand), nowMs));
  }
  return (await Promise.all(checks)).flat();
}

async function checkShard<R extends ReplyLiveness>(
  redis: RedisClient,
  shard: number,
  replies: readonly R[],
  nowMs: () => number,
): Promise<R[]> {
  const before = replies.map(({ lastActivityAtMs }) => lastActivityAtMs);
  const ids = replies.map(({ request }) => request.requestId);
  // While one node of a Cluster is down, requests on the other nodes are still checked.
  const reservations = await redis.hmget(redisKeys.reservations(shard), ...ids).catch(() => null);
  if (reservations === null) return [];
  return replies.filter((reply, i) => {
    if (reply.lastActivityAtMs !== before[i]) return false;
    reply.lastActivityAtMs = nowMs();
    reply.checksWithoutReservation = reservations[i] === null ? reply.checksWithoutReservation + 1 : 0;
    return reply.checksWithoutReservation >= reply.checksUntilLost;
  });
}
