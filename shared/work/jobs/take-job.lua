-- Takes the account's next job of one model. Ends jobs whose deadline or time to be cancelled has passed or whose account
-- is banned. The job stays queued until its worker has a call slot at a vendor.
--
-- Replies {left, id, attempt, body, bytes, isFree, cancelInMs}: how many jobs still wait, and the taken job. The body is
-- '' if it is large or gone. `cancelInMs` is how long the job may take from now; '' for any time. Replies only {left} if
-- there was none to take.
-- luacheck: read globals jobLeaseMs ledgerStreamBound

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local queue = ARGV[2] -- of the job
local model = ARGV[3] -- of the job
local workerId = ARGV[4] -- that takes the job
local deadlineMessage = ARGV[5] -- for the caller of a job whose deadline has passed
local bannedMessage = ARGV[6] -- for the caller of a job whose account is banned
local overdueMessage = ARGV[7] -- for the caller of a job whose time to be cancelled has passed

-- include 'job-functions.lua'

local waiting = waitingOf(accountId, queue, model)
local isBanned = redis.call('HGET', prefix .. 'account:' .. accountId, 'ban') == '1'
-- The ledger's stream is full because MongoDB is unavailable. Jobs would add to it, so they wait.
if redis.call('XLEN', prefix .. 'ledger') >= ledgerStreamBound then return {redis.call('ZCARD', waiting)} end
for _ = 1, 16 do
  local id = redis.call('ZRANGE', waiting, 0, 0)[1]
  if not id then break end
  local record = recordOf(accountId, id)
  local deadline, attempts, bytes, hold, cancelAt, cancelAfterMs =
    unpack(redis.call('HMGET', record, 'dl', 'n', 'bytes', 'hold', 'ca', 'cd'))
  if not deadline then
    removeFromWaitingList(accountId, id, queue, model)
  elseif isBanned then
    endWithoutCharge(accountId, id, 'f', 'account_banned', bannedMessage)
  elseif isOverdue(cancelAt) then
    endWithoutCharge(accountId, id, 'c', 'job_cancelled', overdueMessage)
  elseif tonumber(deadline) < nowMs then
    endWithoutCharge(accountId, id, 'f', 'deadline_exceeded', deadlineMessage)
  else
    local attempt = tonumber(attempts) + 1
    removeFromWaitingList(accountId, id, queue, model)
    redis.call('HSET', record, 'n', attempt, 'w', workerId)
    redis.call('ZADD', prefix .. 'job-leases', nowMs + jobLeaseMs, accountId .. ' ' .. id)
    local isInline = tonumber(bytes) <= maxInlineBytes
    local body = isInline and redis.call('GET', prefix .. 'job-body:' .. accountId .. ':' .. id) or ''
    local isFree = string.match(hold or '', '^%d+ (%d)') or '0'
    -- Never longer than the whole time, even if the clock was set back.
    local cancelInMs = cancelAt and math.min(tonumber(cancelAt) - nowMs, tonumber(cancelAfterMs)) or ''
    return {redis.call('ZCARD', waiting), id, attempt, body, tonumber(bytes), isFree, cancelInMs}
  end
end
return {redis.call('ZCARD', waiting)}
