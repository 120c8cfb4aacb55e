-- decision 0074
--
-- Settles requests of one shard that are not durable jobs. Redis recreates the functions of a script each time it runs,
-- and those for durable jobs make a settlement take an eighth longer, so settle-with-jobs.lua is a script of its own.

-- include 'settlement.lua'

return settleAll()
