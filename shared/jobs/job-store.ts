import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { clockFunctions } from './job-lua.ts';
import type { JobStatus } from '../contract/job-terms.ts';
import { parseJob, statusLetter, type JobRecord } from './job-record.ts';

/**
 * Reads jobs: a part of one of the account's lists, newest first (`list`), or those with the given ids (`ids`). Returns
 * the length of the list, the time, and as JSON of each job its id, its fields, and its rank among the account's own
 * waiting jobs for the same model; the rank is -1 if the job is not waiting. A page is one run and one JSON text, because
 * each of its two thousand values alone would cost Redis and the process several times as much.
 */
const readScript = new RedisScript(`${clockFunctions}
local p, account = KEYS[1], ARGV[1]
local ids, total = {}, 0
if ARGV[2] == 'list' then
  local list = p .. 'jobs:' .. account .. ':' .. ARGV[3]
  total = redis.call('ZCARD', list)
  ids = redis.call('ZREVRANGE', list, ARGV[4], ARGV[5])
else
  for i = 3, #ARGV do ids[#ids + 1] = ARGV[i] end
end
local function rankOf(id, fields)
  local status, queue, model
  for i = 1, #fields, 2 do
    if fields[i] == 'st' then status = fields[i + 1]
    elseif fields[i] == 'q' then queue = fields[i + 1]
    elseif fields[i] == 'm' then model = fields[i + 1] end
  end
  return status == 'q' and redis.call('ZRANK', p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model, id)
end
local jobs = {}
for _, id in ipairs(ids) do
  local fields = redis.call('HGETALL', p .. 'job:' .. account .. ':' .. id)
  if #fields > 0 then jobs[#jobs + 1] = {id, rankOf(id, fields) or -1, fields} end
end
return {total, nowMs(), #jobs > 0 and cjson.encode(jobs) or '[]'}
`);

/** Once reported, a position never increases. Takes pairs of a job and its position. */
const positionsScript = new RedisScript(`
local p, account = KEYS[1], ARGV[1]
local lowest = {}
for i = 2, #ARGV, 2 do
  local record = p .. 'job:' .. account .. ':' .. ARGV[i]
  local position = tonumber(ARGV[i + 1])
  local f = redis.call('HMGET', record, 'st', 'pos')
  local reported = tonumber(f[2] or position)
  if f[1] == 'q' and (not f[2] or position < reported) then redis.call('HSET', record, 'pos', position) end
  lowest[#lowest + 1] = f[1] == 'q' and math.min(reported, position) or reported
end
return lowest
`);

/**
 * Does nothing if the record no longer exists: it must not be recreated with only this field. Never changes the state
 * of a delivered webhook: a worker that froze during its attempt may report a failure after another worker has
 * delivered it.
 */
const webhookScript = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local reported = redis.call('HGET', KEYS[1], 'wh')
if reported and cjson.decode(reported).status == 'delivered' then return 0 end
redis.call('HSET', KEYS[1], 'wh', ARGV[1])
return 1
`);

export interface FoundJob {
  readonly job: JobRecord;
  /** How many of the account's own jobs for the same model start before it. Null if it is not waiting. */
  readonly rank: number | null;
  /** When the job was read, from the same clock as its own times. */
  readonly nowMs: number;
}

export interface JobPage {
  readonly total: number;
  readonly jobs: readonly FoundJob[];
}

/** What the script returns for one job: its fields are names and values in turn. */
type JobReply = readonly [id: string, rank: number, fields: readonly string[]];

/** A job's position that is about to be reported. */
export interface ReportedPosition {
  readonly id: string;
  readonly position: number;
}

/**
 * Reads the durable jobs of accounts. Each method takes one round trip to Redis, regardless of the number of jobs.
 */
export class JobStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Returns null if the account has no such job. */
  async find(accountId: string, id: string): Promise<FoundJob | null> {
    const [job] = await this.findMany(accountId, [id]);
    return job ?? null;
  }

  /**
   * Finds the jobs with these ids, in this order. Ids that the account has no job for are skipped.
   * @param ids at most a page of them, because Redis does nothing else in the meantime
   */
  async findMany(accountId: string, ids: readonly string[]): Promise<readonly FoundJob[]> {
    return (await this.#read(accountId, ['ids', ...ids])).jobs;
  }

  /**
   * Lists the account's jobs, newest first.
   * @param status null for all statuses
   */
  async list(
    accountId: string,
    status: JobStatus | null,
    { page, pageSize }: { readonly page: number; readonly pageSize: number },
  ): Promise<JobPage> {
    const from = (page - 1) * pageSize;
    const list = status === null ? 'all' : statusLetter(status);
    return await this.#read(accountId, ['list', list, from, from + pageSize - 1]);
  }

  async #read(accountId: string, selected: readonly (string | number)[]): Promise<JobPage> {
    const keys = [redisKeys.jobsOf(shardOf(accountId))];
    const reply = await callRedis(() => readScript.run(this.#redis, keys, [accountId, ...selected]));
    const [total, nowMs, text] = reply as [number, number, string];
    const jobs = (JSON.parse(text) as JobReply[]).flatMap(([id, rank, pairs]) => {
      const fields: Record<string, string> = {};
      for (let i = 0; i + 1 < pairs.length; i += 2) fields[pairs[i]!] = pairs[i + 1]!;
      const job = parseJob(accountId, id, fields);
      return job === null ? [] : [{ job, rank: rank < 0 ? null : rank, nowMs }];
    });
    return { total, jobs };
  }

  /** Records the state of the job's webhook, as JSON. Does nothing if the job no longer exists. */
  async recordWebhook(accountId: string, id: string, report: string): Promise<void> {
    const keys = [redisKeys.job(accountId, id)];
    await callRedis(() => webhookScript.run(this.#redis, keys, [report]));
  }

  /**
   * Records positions that are about to be reported to the caller.
   * @returns for each of these jobs the lowest position ever reported, including this one
   */
  async recordPositions(accountId: string, reported: readonly ReportedPosition[]): Promise<number[]> {
    const keys = [redisKeys.jobsOf(shardOf(accountId))];
    const args = reported.flatMap(({ id, position }) => [id, position]);
    return (await callRedis(() => positionsScript.run(this.#redis, keys, [accountId, ...args]))) as number[];
  }
}
