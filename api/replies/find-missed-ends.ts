import type { AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';

/** A request is looked up after this much silence. */
const lookAfterMs = 5_000;

/** The last frame of a request follows its settlement immediately. If it has not arrived by the next look-up, it is lost. */
export const checksToEnd = 2;
/**
 * The same for jobs on a BullMQ queue. If their worker died right after the settlement, the job runs again once its lock of
 * 10 s has expired, which BullMQ checks every 5 s, and then delivers what was paid for.
 */
export const checksToEndQueued = 5;

/** When a request was last heard from. */
export interface ReplyLiveness {
  readonly request: AdmittedRequest;
  /** Time of the last frame or the last look-up. */
  seenAtMs: number;
  /** Consecutive look-ups that found no reservation. */
  endedChecks: number;
  /** How many of them mean that no more frames will come. */
  readonly checksToEnd: number;
  /** The caller is not reading, so the worker sends nothing, whether or not the request is settled. */
  isPaused: boolean;
}

/** Restarts the silence timer when a caller pauses or resumes reading. */
export function setPaused(hearing: ReplyLiveness, isPaused: boolean, nowMs: number): void {
  hearing.isPaused = isPaused;
  hearing.endedChecks = 0;
  hearing.seenAtMs = nowMs;
}

/** Well below the limit of arguments per command. */
const idsPerCommand = 1_000;

/**
 * A request without a reservation has ended. Frames that have not arrived after enough look-ups were lost in transit.
 * @returns the requests that will get no more frames
 */
export async function findMissedEnds<H extends ReplyLiveness>(
  redis: RedisClient,
  hearings: readonly H[],
  nowMs: () => number,
): Promise<H[]> {
  const byShard = new Map<number, H[]>();
  for (const hearing of hearings) {
    if (hearing.isPaused || nowMs() - hearing.seenAtMs < lookAfterMs) continue;
    const shard = shardOf(hearing.request.accountId);
    const silent = byShard.get(shard);
    if (silent === undefined) byShard.set(shard, [hearing]);
    else silent.push(hearing);
  }
  const looks: Promise<H[]>[] = [];
  for (const [shard, silent] of byShard) {
    for (let from = 0; from < silent.length; from += idsPerCommand)
      looks.push(look(redis, shard, silent.slice(from, from + idsPerCommand), nowMs));
  }
  return (await Promise.all(looks)).flat();
}

async function look<H extends ReplyLiveness>(
  redis: RedisClient,
  shard: number,
  hearings: readonly H[],
  nowMs: () => number,
): Promise<H[]> {
  const before = hearings.map(({ seenAtMs }) => seenAtMs);
  const ids = hearings.map(({ request }) => request.requestId);
  // While one node of a Cluster is down, requests on the other nodes are still looked up.
  const reservations = await redis.hmget(redisKeys.reservations(shard), ...ids).catch(() => null);
  if (reservations === null) return [];
  return hearings.filter((hearing, i) => {
    if (hearing.seenAtMs !== before[i]) return false;
    hearing.seenAtMs = nowMs();
    hearing.endedChecks = reservations[i] === null ? hearing.endedChecks + 1 : 0;
    return hearing.endedChecks >= hearing.checksToEnd;
  });
}
