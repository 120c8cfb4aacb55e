import type { AccountDocument } from '../accounts/account-store.ts';
import { readJobSettings } from '../accounts/job-settings.ts';
import { formatStreamId, isAfter, type StreamId } from '../ledger/usage-event.ts';
import { advanceStream } from '../ledger/advance-stream.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';

/**
 * Loads an account from MongoDB into Redis. The state is MongoDB's copy, plus the entries in its shard's stream that
 * are not in MongoDB yet, plus the reservations of its running requests.
 *
 * Each execution scans a bounded number of entries and returns its position; the next one continues from there. Only
 * the last execution writes: it finds the end of the stream and writes the account in the same step. Entries never
 * change, so those already read stay valid as long as none is trimmed before it is read. Each execution checks that:
 * the last entry read must still be in the stream or be the last one trimmed. The first execution checks the entry that
 * was trimmed last before MongoDB was read, so every entry that MongoDB did not have is in the stream.
 */
const script = new RedisScript(`${advanceStream}
local account, reservations, stream, window, trimmedKey, recovering, jobsHeld = unpack(KEYS)
local accountId, overwrites, lastSeen, from, checkpoint, maxEntries = unpack(ARGV, 1, 6)
if overwrites == '0' and redis.call('EXISTS', account) == 1 then return {'present'} end
if redis.call('EXISTS', recovering) == 1 then return {'recovering'} end
if (redis.call('GET', trimmedKey) or '') ~= lastSeen
  and (lastSeen == '' or #redis.call('XRANGE', stream, lastSeen, lastSeen) == 0) then return {'stale'} end
if advanceStream(stream, recovering, checkpoint) then return {'recovering'} end

local fields = {}
for i = 7, #ARGV, 2 do fields[ARGV[i]] = ARGV[i + 1] end
-- The same conditions as in parseLedgerEntry: an entry that MongoDB ignores must be ignored here, too.
local function isInteger(text, pattern)
  return text and string.find(text, pattern) and math.abs(tonumber(text)) <= ${Number.MAX_SAFE_INTEGER}
end
local function isCount(text) return isInteger(text, '^%d+$') end
local sums = {bal = 0, added = 0, free = 0}
local highest = {charges = tonumber(fields.charges), codes = tonumber(fields.codes)}
local entries = redis.call('XRANGE', stream, '(' .. from, '+', 'COUNT', maxEntries)
for _, entry in ipairs(entries) do
  local entryFields = entry[2]
  -- Most entries belong to other accounts.
  if entryFields[4] == accountId and entryFields[3] == 'account' and entryFields[1] == 'kind' then
    local e = {}
    for i = 1, #entryFields, 2 do e[entryFields[i]] = entryFields[i + 1] end
    local kind = entryFields[2]
    if kind == 'charge' and isCount(e.cost) and isCount(e.shortfall) and isCount(e.ordinal)
      and (e.free == '0' or e.free == '1') then
      sums.bal = sums.bal - tonumber(e.cost)
      sums.free = sums.free - tonumber(e.free)
      highest.charges = math.max(highest.charges, tonumber(e.ordinal))
    elseif kind == 'refill' and isInteger(e.amount, '^%-?%d+$') and isInteger(e.free, '^%-?%d+$')
      and (not e.ordinal or isCount(e.ordinal)) then
      local amount = tonumber(e.amount)
      sums.bal = sums.bal + amount
      sums.added = sums.added + math.max(0, amount)
      sums.free = sums.free + tonumber(e.free)
      highest.codes = math.max(highest.codes, tonumber(e.ordinal or 0))
    end
  end
end
for name, sum in pairs(sums) do highest[name] = tonumber(fields[name]) + sum end
for name, value in pairs(highest) do fields[name] = string.format('%.0f', value) end
if #entries == tonumber(maxEntries) then
  local reply = {'more', entries[#entries][1]}
  for name in pairs(highest) do
    reply[#reply + 1] = name
    reply[#reply + 1] = fields[name]
  end
  return reply
end

-- The total reserved by its durable jobs is stored and updated with every change.
local held = redis.call('HMGET', jobsHeld, 'cost', 'free')
local reserved, freeHeld = tonumber(held[1] or '0'), tonumber(held[2] or '0')
local prefix = accountId .. ' '
for _, value in ipairs(redis.call('HVALS', reservations)) do
  if string.sub(value, 1, #prefix) == prefix then
    local cost, isFree = string.match(value, '^%S+ (%d+) (%d)')
    reserved = reserved + tonumber(cost)
    freeHeld = freeHeld + tonumber(isFree)
  end
end
fields.res, fields.fres, fields.win = string.format('%.0f', reserved), freeHeld, 0
-- If the account is already in Redis, keep its values of these fields: changes are written to Redis as well and may be
-- newer than the copy read from MongoDB.
local keptFields = {'key', 'rpm', 'mqj', 'wgt', 'ban'}
local current = redis.call('HMGET', account, unpack(keptFields))
for i, name in ipairs(keptFields) do fields[name] = current[i] or fields[name] end
redis.call('DEL', window)
for name, value in pairs(fields) do redis.call('HSET', account, name, value) end
return {'restored'}
`);

/** Scanning this many entries takes Redis a few milliseconds, during which all other commands wait. */
const defaultEntriesPerRun = 500;

/**
 * - `present`: the account is already in Redis
 * - `stale`: the ledger has moved on since MongoDB was read; read it again
 * - `recovering`: the shard has lost data in Redis; a batch that was being written to MongoDB will
 *   arrive there in a moment
 */
export type RestoreOutcome = 'restored' | 'present' | 'stale' | 'recovering';

export interface RestoreRequest {
  readonly account: AccountDocument;
  /** Id of the last entry trimmed from the shard's stream, read from Redis before MongoDB; '' if none was trimmed. */
  readonly trimmed: string;
  /** The shard's checkpoint in MongoDB. */
  readonly checkpoint: StreamId;
  /**
   * Whether to replace an account that is already in Redis. Only for an account known to be older than MongoDB's copy.
   */
  readonly overwrites: boolean;
  /** How many stream entries one execution of the script scans. */
  readonly entriesPerRun?: number | undefined;
}

/**
 * Loads the account. If several processes do so, the first to reach the end of the stream writes it. A process that
 * dies before that leaves nothing behind.
 */
export async function runRestore(redis: RedisClient, request: RestoreRequest): Promise<RestoreOutcome> {
  const { account, trimmed, checkpoint, overwrites, entriesPerRun = defaultEntriesPerRun } = request;
  const shard = shardOf(account._id);
  const keys = [
    redisKeys.account(account._id),
    redisKeys.reservations(shard),
    redisKeys.ledgerStream(shard),
    redisKeys.rpmWindow(account._id),
    redisKeys.ledgerTrimmed(shard),
    redisKeys.ledgerRecovering(shard),
    redisKeys.jobsHeld(account._id),
  ];
  const fields = new Map(Object.entries(toFields(account)));
  const applied = { ms: account.appliedMs, seq: account.appliedSeq };
  // The sums may include a batch that never reached its checkpoint.
  const end = formatStreamId(isAfter(applied, checkpoint) ? applied : checkpoint);
  let [lastSeen, from] = [trimmed, formatStreamId(applied)];
  for (;;) {
    const [outcome, last, ...sums] = (await script.run(redis, keys, [
      account._id,
      overwrites ? 1 : 0,
      lastSeen,
      from,
      end,
      entriesPerRun,
      ...[...fields].flat(),
    ])) as [RestoreOutcome] | ['more', string, ...string[]];
    if (outcome !== 'more') return outcome;
    [lastSeen, from] = [last, last];
    for (let i = 0; i + 1 < sums.length; i += 2) fields.set(sums[i]!, sums[i + 1]!);
  }
}

function toFields(account: AccountDocument): Record<string, string> {
  const { maxQueuedJobs, weight } = readJobSettings(account);
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
    mqj: String(maxQueuedJobs),
    wgt: String(weight),
    ban: account.banned ? '1' : '0',
  };
}
