-- Records the state of a job's webhook. Does nothing if the record no longer exists: it must not be recreated with only
-- this field. Never changes the state of a delivered webhook: a worker that froze during its attempt may report a
-- failure after another worker has delivered it.

local record = KEYS[1] -- hash: the job
local report = ARGV[1] -- state of the webhook, as JSON

if redis.call('EXISTS', record) == 0 then return end
local before = redis.call('HGET', record, 'wh')
if before and cjson.decode(before).status == 'delivered' then return end
redis.call('HSET', record, 'wh', report)
