import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';

const script = new LuaScript(new URL('./list-after.lua', import.meta.url), [
  'key',
  'score',
  'member',
  'count',
]);

export interface ScoredMember {
  readonly member: string;
  readonly score: number;
}

/**
 * Reads a part of a sorted set, highest score first; of members with one score the last by name is first.
 * @param after where the part before ended; null for the first one. The member need not exist any more
 */
export async function listAfter(
  redis: RedisClient,
  key: string,
  after: ScoredMember | null,
  count: number,
): Promise<ScoredMember[]> {
  const values = { key, score: after?.score ?? '', member: after?.member ?? '', count };
  const listed = (await callRedis(() => script.run(redis, values))) as string[];
  const members: ScoredMember[] = [];
  for (let i = 0; i + 1 < listed.length; i += 2)
    members.push({ member: listed[i]!, score: Number(listed[i + 1]) });
  return members;
}
