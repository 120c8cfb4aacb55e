import type { RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/**
 * Uses Redis's clock, like the acquire script, so that a worker with a wrong clock neither loses its leases nor holds
 * them too long. A holder whose slots were freed because it seemed dead restores nothing.
 */
const renewScript = `
if not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 0 end
local time = redis.call('TIME')
local untilMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
for i = 3, #ARGV do redis.call('ZADD', KEYS[1], untilMs, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`;

/**
 * Renews leases in one of the sorted sets of slots, and restores those that Redis has lost. Sends the script as full
 * text, because a retry after NOSCRIPT could arrive after the end of a call and restore the slot that it just released.
 * @returns false if the holder is not alive
 */
export async function runRenewal(
  redis: RedisClient,
  key: string,
  holder: string,
  leases: readonly string[],
  leaseMs: number,
): Promise<boolean> {
  return (await redis.eval(renewScript, 2, key, redisKeys.slotHolders, leaseMs, holder, ...leases)) === 1;
}
