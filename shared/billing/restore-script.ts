import type { AccountDocument } from '../accounts/account-store.ts';
import { formatStreamId, type StreamId } from '../ledger/usage-event.ts';
import { wakeStream } from '../ledger/wake-stream.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';

/**
 * Brings an account from MongoDB into Redis: what is at rest, with the entries that are still on their way in its
 * shard's stream, and with the reservations that its requests under way hold.
 *
 * `trimmed` must be what it was before MongoDB was read: then whatever MongoDB did not have is in the stream.
 */
const script = new RedisScript(`${wakeStream}
local account, reservations, stream, window, trimmedKey, recovering = unpack(KEYS)
local accountId, overwrites, trimmed, applied, checkpoint = unpack(ARGV, 1, 5)
if overwrites == '0' and redis.call('EXISTS', account) == 1 then return 'present' end
if redis.call('EXISTS', recovering) == 1 then return 'recovering' end
if (redis.call('GET', trimmedKey) or '') ~= trimmed then return 'stale' end
if wakeStream(stream, recovering, checkpoint) then return 'recovering' end

local fields = {}
for i = 6, #ARGV, 2 do fields[ARGV[i]] = ARGV[i + 1] end
local sums = {bal = 0, added = 0, free = 0, charges = 0, codes = 0}
for _, entry in ipairs(redis.call('XRANGE', stream, '(' .. applied, '+')) do
  local e = {}
  for i = 1, #entry[2], 2 do e[entry[2][i]] = entry[2][i + 1] end
  if e.account == accountId then
    if e.kind == 'charge' then
      sums.bal = sums.bal - tonumber(e.cost)
      sums.free = sums.free - tonumber(e.free)
      sums.charges = sums.charges + 1
    else
      local amount = tonumber(e.amount)
      sums.bal = sums.bal + amount
      sums.added = sums.added + math.max(0, amount)
      sums.free = sums.free + tonumber(e.free)
      if e.ordinal then sums.codes = sums.codes + 1 end
    end
  end
end
for name, sum in pairs(sums) do fields[name] = string.format('%.0f', tonumber(fields[name]) + sum) end
local reserved, freeHeld = 0, 0
for _, value in ipairs(redis.call('HVALS', reservations)) do
  local owner, cost, isFree = string.match(value, '^(%S+) (%d+) (%d)')
  if owner == accountId then
    reserved = reserved + tonumber(cost)
    freeHeld = freeHeld + tonumber(isFree)
  end
end
fields.res, fields.fres, fields.win = string.format('%.0f', reserved), freeHeld, 0
redis.call('DEL', window)
for name, value in pairs(fields) do redis.call('HSET', account, name, value) end
return 'restored'
`);

/**
 * - `present`: the account is in Redis already
 * - `stale`: the ledger moved on since MongoDB was read; read it again
 * - `recovering`: the shard was found to have lost its memory; a moment later what was on its way to MongoDB is there
 */
export type RestoreOutcome = 'restored' | 'present' | 'stale' | 'recovering';

export interface RestoreRequest {
  readonly account: AccountDocument;
  /** Id of the last entry trimmed from the shard's stream, as Redis said before MongoDB was read; '' for none. */
  readonly trimmed: string;
  /** The shard's checkpoint in MongoDB. */
  readonly checkpoint: StreamId;
  /** Whether an account that is in Redis is replaced: only where it is known to be older than MongoDB's. */
  readonly overwrites: boolean;
}

export async function runRestore(redis: RedisClient, request: RestoreRequest): Promise<RestoreOutcome> {
  const { account, trimmed, checkpoint, overwrites } = request;
  const shard = shardOf(account._id);
  return (await script.run(
    redis,
    [
      redisKeys.account(account._id),
      redisKeys.reservations(shard),
      redisKeys.ledgerStream(shard),
      redisKeys.rpmWindow(account._id),
      redisKeys.ledgerTrimmed(shard),
      redisKeys.ledgerRecovering(shard),
    ],
    [
      account._id,
      overwrites ? 1 : 0,
      trimmed,
      formatStreamId({ ms: account.appliedMs, seq: account.appliedSeq }),
      formatStreamId(checkpoint),
      ...Object.entries(toFields(account)).flat(),
    ],
  )) as RestoreOutcome;
}

function toFields(account: AccountDocument): Record<string, string> {
  return {
    key: account.keyHash,
    type: account.userType,
    created: String(account.createdAt.getTime()),
    bal: account.balanceNano.toString(),
    added: account.totalAddedNano.toString(),
    free: String(account.freeRequests),
    charges: String(account.charges),
    codes: String(account.codes),
    rpm: String(account.requestsPerMinute),
    ban: account.banned ? '1' : '0',
  };
}
