import type { QueueName } from '../queue/job-kinds.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { maxVirtualTime, type HeldJobs, type JobLine, type JobTurn } from './job-line.ts';
import { jobTurnsLua } from './job-turns-lua.ts';

const addScript = new RedisScript(`${jobTurnsLua}
local queue, account = openQueue(ARGV[1]), ARGV[2]
local record = readOrCreate(queue, account)
record.adds = text(redis.call('HINCRBY', index, 'adds', 1))
record.weight = tonumber(ARGV[3])
write(queue, account, record, record.waiting + 1)
return 1
`);

/**
 * Takes one turn from each model that has capacity, then the next from each, starting with the model that was served
 * longest ago. If held jobs are given, skips an account that holds as many jobs as the remaining capacity, which leaves
 * capacity for accounts that start to wait.
 */
const takeScript = new RedisScript(`${jobTurnsLua}
local remaining, capacities = tonumber(ARGV[1]), cjson.decode(ARGV[2])
local held = ARGV[3] and cjson.decode(ARGV[3])
local taken, queues = {}, {}
-- Moves all start tags back by the queue's virtual time, so that they stay exact. Needed at most once in several months.
local function rebase(queue)
  for _, key in ipairs({ queue.turns, queue.idle }) do
    local entries = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #entries, 2 do redis.call('ZADD', key, text(entries[i + 1] - queue.time), entries[i]) end
  end
  queue.time = 0
end
local function takeOne(queue)
  local earliest, account, tag = nil, nil, nil
  local at = 0
  repeat
    local next = redis.call('ZRANGE', queue.turns, at, at, 'WITHSCORES')
    account, tag = next[1], tonumber(next[2])
    earliest, at = earliest or tag, at + 1
  until not account or not held or (queue.held[account] or 0) < queue.capacity
  if not account then
    queue.isDone = true
    if earliest then return 0 end
    queue.isEmpty = true
    redis.call('ZREM', models, queue.model)
    return 0
  end
  local record = read(queue, account)
  -- The record was lost. sync restores the account.
  if not record then redis.call('ZREM', queue.turns, account) return 0 end
  -- The virtual time becomes the earliest start tag, even if its account was skipped. It never decreases.
  queue.time = math.max(queue.time, earliest)
  if held then queue.held[account] = (queue.held[account] or 0) + 1 end
  record.taken = record.taken + 1
  redis.call('ZADD', queue.turns, text(tag + costOf(record.weight)), account)
  write(queue, account, record, record.waiting - 1)
  for _, value in ipairs({ queue.model, account, record.weight, record.adds }) do taken[#taken + 1] = value end
  return 1
end
for _, model in ipairs(redis.call('ZRANGE', models, 0, -1)) do
  local queue = { model = model, capacity = capacities[model] or 0, held = held and held[model] or {} }
  if queue.capacity > 0 then queues[#queues + 1] = queue end
end
local opened, visits = {}, 0
while remaining > 0 and #queues > 0 do
  local unfinished = {}
  for _, queue in ipairs(queues) do
    if remaining == 0 then break end
    if not queue.turns then
      for name, value in pairs(openQueue(queue.model)) do queue[name] = value end
      opened[#opened + 1] = queue
    end
    visits = visits + 1
    queue.visit = visits
    local used = takeOne(queue)
    remaining, queue.capacity = remaining - used, queue.capacity - used
    if queue.capacity > 0 and not queue.isDone and not queue.isEmpty then unfinished[#unfinished + 1] = queue end
  end
  queues = unfinished
end
table.sort(opened, function(one, other) return one.visit < other.visit end)
for _, queue in ipairs(opened) do
  if not queue.isEmpty then rotate(queue.model) end
  redis.call('ZREMRANGEBYSCORE', queue.idle, '-inf', text(queue.time))
  if queue.time > ${maxVirtualTime} then rebase(queue) end
  redis.call('HSET', index, 'time:' .. queue.model, text(queue.time))
end
return taken
`);

/**
 * An account's count is never below the number of jobs that really wait, except when a job is dropped long after it was
 * taken from its list. Jobs are put on their lists before they are added here, and taken off before they are dropped
 * here. If a count is too high, some turns find no job. Such turns are given back, and the last of them removes the
 * account.
 */
const settleScript = new RedisScript(`${jobTurnsLua}
local queue, account, weight, remaining = openQueue(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local record, isUsed = read(queue, account), ARGV[6] == '1'
if not record then record = { waiting = 0, adds = ARGV[4], weight = weight, taken = 0 } end
record.taken = math.max(0, record.taken - 1)
if not isUsed then
  for _, key in ipairs({ queue.turns, queue.idle }) do
    local tag = tonumber(redis.call('ZSCORE', key, account) or '-1')
    if tag >= 0 then redis.call('ZADD', key, text(math.max(queue.time, tag - costOf(weight))), account) end
  end
end
local waiting = record.waiting
if remaining > 0 then waiting = math.max(waiting, remaining - record.taken)
elseif record.adds == ARGV[4] then waiting = 0
elseif not isUsed then waiting = waiting + 1 end
write(queue, account, record, waiting)
return 1
`);

/**
 * Corrects an account's count. Never removes the account, because a job may have been added since the number was read;
 * only a turn that found no job removes it.
 */
const syncScript = new RedisScript(`${jobTurnsLua}
local queue, account, waiting = openQueue(ARGV[1]), ARGV[2], tonumber(ARGV[4])
local record = readOrCreate(queue, account)
if record.waiting > 0 then waiting = math.max(1, waiting) end
if waiting == 0 then return 0 end
record.weight, record.taken = tonumber(ARGV[3]), 0
write(queue, account, record, waiting)
return 1
`);

const dropScript = new RedisScript(`${jobTurnsLua}
local queue, account = openQueue(ARGV[1]), ARGV[2]
local record = read(queue, account)
if not record or record.waiting == 0 then return 0 end
write(queue, account, record, record.waiting - 1)
return 1
`);

/** Scripts append the model to the last three keys. */
const keysOf = (queue: QueueName): string[] => [
  redisKeys.jobModels(queue),
  redisKeys.jobIndex(queue),
  redisKeys.jobTurns(queue, ''),
  redisKeys.jobIdle(queue, ''),
  redisKeys.jobAccounts(queue, ''),
];

export async function runAdd(
  redis: RedisClient,
  { queue, model }: JobLine,
  accountId: string,
  weight: number,
): Promise<void> {
  await addScript.run(redis, keysOf(queue), [model, accountId, weight]);
}

export async function runTake(
  redis: RedisClient,
  queue: QueueName,
  count: number,
  capacities: ReadonlyMap<string, number>,
  held: HeldJobs | null,
): Promise<JobTurn[]> {
  const args = [count, JSON.stringify(Object.fromEntries(capacities))];
  if (held !== null) {
    const heldByModel = Array.from(held, ([model, heldByAccount]) => [
      model,
      Object.fromEntries(heldByAccount),
    ]);
    args.push(JSON.stringify(Object.fromEntries(heldByModel)));
  }
  const reply = (await takeScript.run(redis, keysOf(queue), args)) as (string | number)[];
  const turns: JobTurn[] = [];
  for (let i = 0; i < reply.length; i += 4) {
    const [model, accountId, weight, adds] = reply.slice(i, i + 4);
    turns.push({
      model: String(model),
      accountId: String(accountId),
      weight: Number(weight),
      adds: Number(adds),
    });
  }
  return turns;
}

export async function runSettle(
  redis: RedisClient,
  queue: QueueName,
  { model, accountId, weight, adds }: JobTurn,
  remaining: number,
  isUsed: boolean,
): Promise<void> {
  await settleScript.run(redis, keysOf(queue), [model, accountId, weight, adds, remaining, isUsed ? 1 : 0]);
}

export async function runSync(
  redis: RedisClient,
  { queue, model }: JobLine,
  accountId: string,
  weight: number,
  waiting: number,
): Promise<void> {
  await syncScript.run(redis, keysOf(queue), [model, accountId, weight, waiting]);
}

export async function runDrop(
  redis: RedisClient,
  { queue, model }: JobLine,
  accountId: string,
): Promise<void> {
  await dropScript.run(redis, keysOf(queue), [model, accountId]);
}
