import { AppError } from '../contract/errors.ts';
import { maxBalanceNano } from '../pricing/money.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import type { RefillEvent } from '../ledger/usage-event.ts';

/**
 * Credits an account once per refill id. A negative amount debits it, but never below what its requests have reserved;
 * the entry records the amount actually debited. A balance above the cap would no longer be exact in Lua, so a credit
 * that would exceed it is rejected entirely.
 */
const script = new RedisScript(`
local account, marker, stream = KEYS[1], KEYS[2], KEYS[3]
local amount, free, cap, event = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local isCode = ARGV[5]
local fields = redis.call('HMGET', account, 'bal', 'res', 'free', 'fres')
if not fields[1] then return {'unknown'} end
if redis.call('EXISTS', marker) == 1 then return {'repeated'} end
local balance = tonumber(fields[1])
if balance + amount > cap then return {'capped'} end
amount = math.max(amount, math.min(0, tonumber(fields[2]) - balance))
free = math.max(free, math.min(0, tonumber(fields[4]) - tonumber(fields[3])))
local text = string.format('%.0f', amount)
redis.call('SET', marker, '1', 'EX', 604800)
redis.call('HINCRBY', account, 'bal', text)
redis.call('HINCRBY', account, 'free', string.format('%.0f', free))
if amount > 0 then redis.call('HINCRBY', account, 'added', text) end
-- Kind and account come first in every entry: readers find an account's entries by these positions.
local entry = {'kind', 'refill', 'account', ARGV[6], 'id', ARGV[7], 'amount', text, 'free', string.format('%.0f', free), 'event', event}
if isCode == '1' then
  entry[#entry + 1] = 'ordinal'
  entry[#entry + 1] = redis.call('HINCRBY', account, 'codes', 1)
end
redis.call('XADD', stream, '*', unpack(entry))
return {'credited', text}
`);

export interface Refill {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly event: RefillEvent;
}

/**
 * @returns the nano-roubles that were credited, or taken; null if this refill id was credited before
 * @throws AppError `validation_failed` above the cap; `internal_error` if the account is not loaded
 */
export async function runRefill(redis: RedisClient, refill: Refill): Promise<bigint | null> {
  const { accountId, refillId } = refill.event;
  const [outcome, amount] = (await script.run(
    redis,
    [
      redisKeys.account(accountId),
      redisKeys.refill(accountId, refillId),
      redisKeys.ledgerStream(shardOf(accountId)),
    ],
    [
      refill.amountNano.toString(),
      refill.freeRequests,
      maxBalanceNano.toString(),
      JSON.stringify(refill.event),
      refill.event.code === null ? 0 : 1,
      accountId,
      refillId,
    ],
  )) as [string, string?];
  if (outcome === 'capped') {
    throw new AppError('validation_failed', { message: 'A balance cannot exceed 9 000 000 roubles.' });
  }
  if (outcome === 'unknown') {
    throw new AppError('internal_error', { message: `account ${accountId} is not loaded into Redis` });
  }
  return outcome === 'credited' ? BigInt(amount!) : null;
}
