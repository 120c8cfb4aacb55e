-- Reads a part of a sorted set, highest score first; of members with one score the last by name is first. Replies
-- members and scores in turn. The member at the place where the part before ended may have been removed since.

local key = KEYS[1] -- sorted set
local score = ARGV[1] -- of the place after which the part begins; '' for the first part
local member = ARGV[2] -- at that place
local count = tonumber(ARGV[3]) -- of the members to read

local from = 0
if score ~= '' then
  local known = redis.call('ZSCORE', key, member)
  if known and tonumber(known) == tonumber(score) then from = redis.call('ZREVRANK', key, member) + 1
  else
    from = redis.call('ZCOUNT', key, '(' .. score, '+inf')
    for _, other in ipairs(redis.call('ZRANGE', key, score, score, 'BYSCORE')) do
      if other > member then from = from + 1 end
    end
  end
end
return redis.call('ZREVRANGE', key, from, from + count - 1, 'WITHSCORES')
