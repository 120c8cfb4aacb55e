import type { QueueName } from '../queue/job-kinds.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { JobLine, RunningJob } from './job-line.ts';
import type { JobOutlook, WaitingAccount } from './job-outlook.ts';
import { averageServiceMs, maxStoredRuns, measuredJobs, type EndedRun } from './service-time.ts';

/** How long the service times of an unused model queue stay meaningful. */
const serviceTimesLifetimeMs = 7 * 24 * 3_600_000;

/** Uses Redis's own clock, so that the clocks of machines need not agree. */
const readClock = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function text(number) return string.format('%.0f', number) end
`;

/**
 * Starts or extends leases. A job that Redis has lost is added again, as if it started now. If the clock stepped back,
 * leases of dead workers would stay valid until it caught up, so all leases are shortened to the usual length. Expired
 * leases are removed.
 */
const leaseScript = new RedisScript(`${readClock}
local untilMs = text(now + tonumber(ARGV[1]))
for i = 3, #ARGV, 2 do
  local running, started = KEYS[2] .. ARGV[i], KEYS[3] .. ARGV[i]
  redis.call('ZADD', running, untilMs, ARGV[i + 1])
  if ARGV[2] == 'start' then redis.call('HDEL', started, ARGV[i + 1]) end
  redis.call('HSETNX', started, ARGV[i + 1], text(now))
  redis.call('HSETNX', KEYS[1], 'waiting:' .. ARGV[i], 0)
  for _, jobId in ipairs(redis.call('ZRANGEBYSCORE', running, '(' .. untilMs, '+inf')) do
    redis.call('ZADD', running, untilMs, jobId)
  end
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', running, '-inf', text(now))) do
    redis.call('ZREM', running, expired)
    redis.call('HDEL', started, expired)
  end
end
return 1
`);

/** Ends a lease and stores the service time with the time of its end. */
const endScript = new RedisScript(`${readClock}
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[2] ~= '' then
  redis.call('LPUSH', KEYS[3], ARGV[2] .. ' ' .. text(now))
  redis.call('LTRIM', KEYS[3], 0, ${maxStoredRuns - 1})
  redis.call('PEXPIRE', KEYS[3], ${serviceTimesLifetimeMs})
end
return 1
`);

const outlookScript = new RedisScript(`${readClock}
local elapsed = {}
for _, job in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. text(now), '+inf')) do
  elapsed[#elapsed + 1] = math.max(0, now - tonumber(redis.call('HGET', KEYS[5], job) or now))
end
local ended = {}
for _, measured in ipairs(redis.call('LRANGE', KEYS[6], 0, -1)) do
  local service, at = string.match(measured, '^(%d+) (%d+)$')
  ended[#ended + 1] = tonumber(service)
  ended[#ended + 1] = math.max(0, now - tonumber(at))
end
return {
  redis.call('HGET', KEYS[1], 'time:' .. ARGV[1]) or '0', redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
  redis.call('HGETALL', KEYS[3]), elapsed, ended,
}
`);

const countScript = new RedisScript(`${readClock}
local waiting, running, fields = 0, 0, redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local model = string.match(fields[i], '^waiting:(.*)$')
  if model then
    waiting = waiting + tonumber(fields[i + 1])
    running = running + redis.call('ZCOUNT', KEYS[2] .. model, '(' .. text(now), '+inf')
  end
end
return { waiting, running }
`);

/** The script appends the model to the last two keys. */
const leaseKeys = (queue: QueueName): string[] => [
  redisKeys.jobIndex(queue),
  redisKeys.jobsRunning(queue, ''),
  redisKeys.jobsStarted(queue, ''),
];

export async function runStart(
  redis: RedisClient,
  { line, jobId }: RunningJob,
  leaseMs: number,
): Promise<void> {
  await leaseScript.run(redis, leaseKeys(line.queue), [leaseMs, 'start', line.model, jobId]);
}

/** @param jobs must all belong to that queue */
export async function runRenew(
  redis: RedisClient,
  queue: QueueName,
  jobs: readonly RunningJob[],
  leaseMs: number,
): Promise<void> {
  const leases = jobs.flatMap(({ line, jobId }) => [line.model, jobId]);
  await leaseScript.run(redis, leaseKeys(queue), [leaseMs, 'renew', ...leases]);
}

export async function runEnd(
  redis: RedisClient,
  { queue, model }: JobLine,
  jobId: string,
  serviceMs: number | null,
): Promise<void> {
  const keys = [
    redisKeys.jobsRunning(queue, model),
    redisKeys.jobsStarted(queue, model),
    redisKeys.jobServiceTimes(queue, model),
  ];
  await endScript.run(redis, keys, [jobId, serviceMs === null ? '' : Math.max(0, Math.round(serviceMs))]);
}

/** Reads waiting jobs and weight by account from records of the form `waiting adds weight taken`. */
function parseRecords(fields: readonly string[]): Map<string, { waiting: number; weight: number }> {
  const records = new Map<string, { waiting: number; weight: number }>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [waiting = '0', , weight = '1'] = fields[i + 1]!.split(' ');
    records.set(fields[i]!, { waiting: Number(waiting), weight: Number(weight) });
  }
  return records;
}

export async function runOutlook(redis: RedisClient, { queue, model }: JobLine): Promise<JobOutlook> {
  const keys = [
    redisKeys.jobIndex(queue),
    redisKeys.jobTurns(queue, model),
    redisKeys.jobAccounts(queue, model),
    redisKeys.jobsRunning(queue, model),
    redisKeys.jobsStarted(queue, model),
    redisKeys.jobServiceTimes(queue, model),
  ];
  const reply = await outlookScript.run(redis, keys, [model]);
  const [time, tags, fields, runningMs, times] = reply as [string, string[], string[], number[], number[]];
  const records = parseRecords(fields);
  const accounts: WaitingAccount[] = [];
  for (let i = 0; i + 1 < tags.length; i += 2) {
    const accountId = tags[i]!;
    const record = records.get(accountId);
    if (record !== undefined) accounts.push({ accountId, startTag: Number(tags[i + 1]), ...record });
  }
  const ended: EndedRun[] = [];
  for (let i = 0; i + 1 < times.length; i += 2) ended.push({ serviceMs: times[i]!, agoMs: times[i + 1]! });
  const serviceMs = averageServiceMs(ended.slice(0, measuredJobs).map((run) => run.serviceMs));
  return { virtualTime: Number(time), accounts, running: runningMs.length, runningMs, ended, serviceMs };
}

export async function runCount(
  redis: RedisClient,
  queue: QueueName,
): Promise<{ readonly waiting: number; readonly running: number }> {
  const keys = [redisKeys.jobIndex(queue), redisKeys.jobsRunning(queue, '')];
  const [waiting = 0, running = 0] = (await countScript.run(redis, keys, [])) as number[];
  return { waiting, running };
}
