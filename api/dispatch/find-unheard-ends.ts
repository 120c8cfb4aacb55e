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

/** Far below what one command may be given. */
const idsPerCommand = 1_000;

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

async function look<H extends Hearing>(
  redis: RedisClient,
  shard: number,
  hearings: readonly H[],
  nowMs: () => number,
): Promise<H[]> {
  const before = hearings.map(({ seenAtMs }) => seenAtMs);
  const ids = hearings.map(({ request }) => request.requestId);
  // While one node of a Cluster is away, the requests of the others are looked up all the same.
  const reservations = await redis.hmget(redisKeys.reservations(shard), ...ids).catch(() => null);
  if (reservations === null) return [];
  return hearings.filter((hearing, i) => {
    if (hearing.seenAtMs !== before[i]) return false;
    const hadEnded = hearing.hasEnded;
    hearing.seenAtMs = nowMs();
    hearing.hasEnded = reservations[i] === null;
    return hadEnded && hearing.hasEnded;
  });
}
