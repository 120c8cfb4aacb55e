import type { RedisClient } from '../redis/redis-client.ts';

/** By the clock of Redis, as they were granted: a worker whose own is wrong must not lose them, nor keep them for long. */
const renewScript = `
local time = redis.call('TIME')
local untilMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], untilMs, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
`;

/**
 * Renews leases in one of the sorted sets that slots are taken of; also puts back those that Redis has lost. Sent as its
 * whole text: a second try, of a script that Redis did not know by its hash, would overtake the end of a call and put
 * back what that gave away.
 */
export async function runRenewal(
  redis: RedisClient,
  key: string,
  leases: readonly string[],
  leaseMs: number,
): Promise<void> {
  await redis.eval(renewScript, 1, key, leaseMs, ...leases);
}
