-- Counts the jobs or batches of several queues, and finds accounts with waiting ones.
--
-- Replies {nowMs, queues}: for each queue a flat list of its models: model, how many wait, how many run, accounts.

local maxAccounts = tonumber(ARGV[1]) -- per model

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local queues = {}
for eachKey = 0, #KEYS - 1, 3 do
  local index = KEYS[eachKey + 1] -- hash: counters of all models
  local runningPrefix = KEYS[eachKey + 2] -- of each model's sorted set: running jobs by the time at which their lease expires
  local turnsPrefix = KEYS[eachKey + 3] -- of each model's sorted set: accounts with waiting jobs by their start tag
  local models, fields = {}, redis.call('HGETALL', index)
  for i = 1, #fields, 2 do
    local model = string.match(fields[i], '^waiting:(.*)$')
    if model then
      models[#models + 1] = model
      models[#models + 1] = tonumber(fields[i + 1])
      models[#models + 1] = redis.call('ZCOUNT', runningPrefix .. model, '(' .. whole(nowMs), '+inf')
      models[#models + 1] = maxAccounts > 0 and redis.call('ZRANGE', turnsPrefix .. model, 0, maxAccounts - 1) or {}
    end
  end
  queues[#queues + 1] = models
end
return {whole(nowMs), queues}
