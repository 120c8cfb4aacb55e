-- Pre-admits a request in one round trip, before its body is read and tokenized. Checks that the account is not banned
-- and that the key still belongs to it and may be used from the caller's address, and takes RPM slots of the sliding
-- minute. If no slots are requested, takes none but checks that one is available.
--
-- Replies {'ok', limit, remaining, resetSeconds, spendableNano, freeRequests, isReplay, slotsTaken, budget, tokens},
-- {'rate_limited', limit, remaining, resetSeconds, retryAfterMs}, {'tokens_limited', limit, remaining, resetSeconds,
-- tokens}, {'unknown'}, {'banned'}, {'revoked'}, {'expired', atMs} or {'address_refused'}. `budget` and `tokens` are as
-- restrictions.lua describes them; a reply without restrictions ends before them. `spendableNano` does not consider the
-- budgets.

local account = KEYS[1] -- hash: the account
local window = KEYS[2] -- list: its sliding minute
local claim = KEYS[3] -- hash: the claim of an Idempotency-Key; the account again if the caller sent none
local keyHash = ARGV[1] -- of the caller's API key; '' for one that was authenticated otherwise
local slots = tonumber(ARGV[2]) -- to take
local address = ARGV[3] -- of the caller, as in restrictions.lua
local checksTokens = ARGV[4] -- '1' if the request counts towards the tokens per minute

-- include 'rate-window.lua'
-- include 'restrictions.lua'

local balance, reserved, free, freeHeld, limit, ban, key, used, isRestricted =
  unpack(redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'rpm', 'ban', 'key', 'win', 'ext'))
if not balance then return {'unknown'} end
if ban == '1' then return {'banned'} end
if keyHash ~= '' and key ~= keyHash then return {'revoked'} end
limit = tonumber(limit)
local restrictions = isRestricted and openRestrictions()
local rejection = restrictions and restrictions.checkAccess()
if rejection then return rejection end
local needed = math.max(1, math.min(slots, limit))
used, rejection = takeSlots(window, tonumber(used or '0'), limit, needed, slots == 0)
redis.call('HSET', account, 'win', used)
if rejection then return rejection end
local isReplay = claim == account and 0 or redis.call('EXISTS', claim)
local spendable = string.format('%.0f', tonumber(balance) - tonumber(reserved))
local freeRequests = tonumber(free) - tonumber(freeHeld)
local reply = {'ok', limit, limit - used, 60, spendable, freeRequests, isReplay, slots == 0 and 0 or needed}
if restrictions then
  -- A replay uses no tokens.
  if checksTokens == '1' and isReplay == 0 and restrictions.isOverTokenLimit() then
    return {'tokens_limited', limit, limit - used, 60, restrictions.describeTokens()}
  end
  reply[9], reply[10] = restrictions.describeBudget(), restrictions.describeTokens()
end
return reply
