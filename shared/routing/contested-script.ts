import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { CallSlot } from './acquire-script.ts';
import { slotsOf } from './candidate-keys.ts';

const contestedScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for _, waiting in ipairs(KEYS) do
  for _, account in ipairs(redis.call('ZRANGE', waiting, now, '+inf', 'BYSCORE', 'LIMIT', 0, 2)) do
    if account ~= ARGV[1] then return 1 end
  end
end
return 0
`);

/** Whether another account waits for slots that this call holds. One round trip. */
export async function isContested(redis: RedisClient, { candidate, accountId }: CallSlot): Promise<boolean> {
  const slots = slotsOf(candidate);
  const keys = slots.keys.filter((_, i) => slots.limits[i]! > 0).map((key) => redisKeys.waitingFor(key));
  return (await contestedScript.run(redis, keys, [accountId])) === 1;
}
