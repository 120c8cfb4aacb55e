-- Records the progress of a running job. It never decreases.

local record = KEYS[1] -- hash: the job
local attempt = ARGV[1] -- that reports
local progress = ARGV[2] -- from 0 to 1

local status, current, before = unpack(redis.call('HMGET', record, 'st', 'n', 'pg'))
if current ~= attempt or status ~= 'a' then return end
if tonumber(progress) > tonumber(before or '0') then redis.call('HSET', record, 'pg', progress) end
