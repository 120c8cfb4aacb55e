-- Records that the response of an ended job is deleted, before it is. Replies 'deleted', 'unfinished' or 'unknown'.

local record = KEYS[1] -- hash: the job

local status = redis.call('HGET', record, 'st')
if not status then return 'unknown' end
if status == 'q' or status == 'a' then return 'unfinished' end
redis.call('HSET', record, 'rd', '1')
return 'deleted'
