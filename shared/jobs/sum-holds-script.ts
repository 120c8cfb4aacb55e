import type { ChainableCommander } from 'ioredis';
import { redisKeys } from '../redis/redis-keys.ts';

/** Maximum number of jobs to sum. More would block Redis for other clients. */
const maxSummedJobs = 10_000;

const sumLua = `
local p, account = KEYS[1], ARGV[1]
local held = redis.call('HMGET', p .. 'jobs-held:' .. account, 'cost', 'free')
local lists = { p .. 'jobs:' .. account .. ':q', p .. 'jobs:' .. account .. ':a' }
if redis.call('ZCARD', lists[1]) + redis.call('ZCARD', lists[2]) > ${maxSummedJobs} then
  return { held[1], held[2], false, false }
end
local cost, free = 0, 0
for _, list in ipairs(lists) do
  for _, id in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    local hold = redis.call('HGET', p .. 'job:' .. account .. ':' .. id, 'hold')
    local amount, isFree = string.match(hold or '0 0', '^(%d+) (%d)')
    if isFree == '1' then free = free + 1 else cost = cost + tonumber(amount) end
  end
end
return { held[1], held[2], string.format('%.0f', cost), string.format('%.0f', free) }
`;

/**
 * Adds a query for the reservations of an account's durable jobs to a transaction: the stored counters, and the sum
 * over the jobs unless there are too many. It returns `[cost, free, summed cost, summed free]`.
 */
export function sumJobReservations(transaction: ChainableCommander, shard: number, accountId: string): void {
  transaction.eval(sumLua, 1, redisKeys.jobsOf(shard), accountId);
}
