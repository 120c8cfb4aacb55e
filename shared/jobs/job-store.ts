import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { clockFunctions } from './job-lua.ts';
import type { JobStatus } from '../contract/job-terms.ts';
import { parseJob, statusLetter, type JobRecord } from './job-record.ts';

/**
 * Reads a job and its rank among the account's own waiting jobs for the same model. The rank is -1 if the job is not
 * waiting.
 */
const findScript = new RedisScript(`${clockFunctions}
local p, account, id = KEYS[1], ARGV[1], ARGV[2]
local fields = redis.call('HGETALL', p .. 'job:' .. account .. ':' .. id)
local f = {}
for i = 1, #fields, 2 do f[fields[i]] = fields[i + 1] end
local rank = f.st == 'q' and redis.call('ZRANK', p .. 'jobs-waiting:' .. account .. ':' .. f.q .. ':' .. f.m, id)
return {fields, rank or -1, nowMs()}
`);

/** Once reported, a position never increases. */
const positionScript = new RedisScript(`
local reported = tonumber(redis.call('HGET', KEYS[1], 'pos') or ARGV[1])
if redis.call('HGET', KEYS[1], 'st') ~= 'q' then return reported end
local lowest = math.min(reported, tonumber(ARGV[1]))
redis.call('HSET', KEYS[1], 'pos', lowest)
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

/**
 * Reads the durable jobs of accounts. Each method takes one or two round trips to Redis, regardless of the number of
 * jobs.
 */
export class JobStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Returns null if the account has no such job. */
  async find(accountId: string, id: string): Promise<FoundJob | null> {
    const keys = [redisKeys.jobsOf(shardOf(accountId))];
    const reply = await callRedis(() => findScript.run(this.#redis, keys, [accountId, id]));
    const [pairs, rank, nowMs] = reply as [string[], number, number];
    const fields: Record<string, string> = {};
    for (let i = 0; i + 1 < pairs.length; i += 2) fields[pairs[i]!] = pairs[i + 1]!;
    const job = parseJob(accountId, id, fields);
    return job === null ? null : { job, rank: rank < 0 ? null : rank, nowMs };
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
    const key = redisKeys.jobsList(accountId, status === null ? 'all' : statusLetter(status));
    const from = (page - 1) * pageSize;
    const [total, ids] = await callRedis(() =>
      Promise.all([this.#redis.zcard(key), this.#redis.zrevrange(key, from, from + pageSize - 1)]),
    );
    const found = await Promise.all(ids.map((id) => this.find(accountId, id)));
    return { total, jobs: found.filter((one) => one !== null) };
  }

  /** Records the state of the job's webhook, as JSON. Does nothing if the job no longer exists. */
  async recordWebhook(accountId: string, id: string, report: string): Promise<void> {
    const keys = [redisKeys.job(accountId, id)];
    await callRedis(() => webhookScript.run(this.#redis, keys, [report]));
  }

  /**
   * Records a position that is reported to the caller.
   * @returns the lowest position ever reported for the job, including this one
   */
  async recordPosition(accountId: string, id: string, position: number): Promise<number> {
    const keys = [redisKeys.job(accountId, id)];
    return Number(await callRedis(() => positionScript.run(this.#redis, keys, [position])));
  }
}
