-- Reads jobs. Needs `prefix` and `accountId`.

-- include '../../platform/redis/clock.lua'

-- Returns the rank of a job among the account's own waiting jobs for the same model; -1 if it does not wait.
local function rankOf(id, fields)
  local status, queue, model
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if name == 'st' then status = value
    elseif name == 'q' then queue = value
    elseif name == 'm' then model = value end
  end
  if status ~= 'q' then return -1 end
  return redis.call('ZRANK', prefix .. 'jobs-waiting:' .. accountId .. ':' .. queue .. ':' .. model, id) or -1
end

-- Returns the time, and as JSON of each job its id, its rank and its fields. One JSON text, because each of the two
-- thousand values of a page alone would cost Redis and the process several times as much.
local function readJobs(ids)
  local jobs = {}
  for _, id in ipairs(ids) do
    local fields = redis.call('HGETALL', prefix .. 'job:' .. accountId .. ':' .. id)
    if #fields > 0 then jobs[#jobs + 1] = {id, rankOf(id, fields), fields} end
  end
  return nowMs, #jobs > 0 and cjson.encode(jobs) or '[]'
end
