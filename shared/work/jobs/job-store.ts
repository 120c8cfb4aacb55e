// decision 0053
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import type { JobStatus } from '../../contract/job-terms.ts';
import { parseJob, statusLetter, type JobRecord } from './job-record.ts';

const listScript = new LuaScript(new URL('./list-jobs.lua', import.meta.url), [
  'prefix',
  'accountId',
  'list',
  'from',
  'to',
]);
const findScript = new LuaScript(new URL('./find-jobs.lua', import.meta.url), ['prefix', 'accountId'], {
  itemNames: ['id'],
});
const positionsScript = new LuaScript(
  new URL('./record-positions.lua', import.meta.url),
  ['prefix', 'accountId'],
  { itemNames: ['id', 'position'] },
);
const deleteResponseScript = new LuaScript(new URL('./delete-response.lua', import.meta.url), ['record']);
const webhookScript = new LuaScript(new URL('./record-webhook.lua', import.meta.url), ['record', 'report']);

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

/** What the scripts return for one job, in JSON: its fields are names and values in turn. */
type JobReply = readonly [id: string, rank: number, fields: readonly string[]];

/** A job's position that is about to be reported. */
export interface ReportedPosition {
  readonly id: string;
  readonly position: number;
}

const valuesOf = (accountId: string) => ({ prefix: redisKeys.jobsOf(shardOf(accountId)), accountId });

function parseJobs(accountId: string, text: string, nowMs: number): FoundJob[] {
  return (JSON.parse(text) as JobReply[]).flatMap(([id, rank, pairs]) => {
    const fields: Record<string, string> = {};
    for (let i = 0; i + 1 < pairs.length; i += 2) fields[pairs[i]!] = pairs[i + 1]!;
    const job = parseJob(accountId, id, fields);
    return job === null ? [] : [{ job, rank: rank < 0 ? null : rank, nowMs }];
  });
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
    const items = ids.map((id) => ({ id }));
    const reply = await callRedis(() => findScript.run(this.#redis, valuesOf(accountId), items));
    const [nowMs, jobs] = reply as [nowMs: number, jobs: string];
    return parseJobs(accountId, jobs, nowMs);
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
    const values = { ...valuesOf(accountId), list, from, to: from + pageSize - 1 };
    const reply = await callRedis(() => listScript.run(this.#redis, values));
    const [total, nowMs, jobs] = reply as [total: number, nowMs: number, jobs: string];
    return { total, jobs: parseJobs(accountId, jobs, nowMs) };
  }

  /** Records the state of the job's webhook, as JSON. Does nothing if the job no longer exists. */
  async recordWebhook(accountId: string, id: string, report: string): Promise<void> {
    const record = redisKeys.job(accountId, id);
    await callRedis(() => webhookScript.run(this.#redis, { record, report }));
  }

  /** Records that the response of a job is deleted, if the job has ended. Its caller then deletes the response. */
  async markResponseDeleted(accountId: string, id: string): Promise<'deleted' | 'unfinished' | 'unknown'> {
    const record = redisKeys.job(accountId, id);
    const reply = await callRedis(() => deleteResponseScript.run(this.#redis, { record }));
    return reply as 'deleted' | 'unfinished' | 'unknown';
  }

  /**
   * Records positions that are about to be reported to the caller.
   * @returns for each of these jobs the lowest position ever reported, including this one
   */
  async recordPositions(accountId: string, reported: readonly ReportedPosition[]): Promise<number[]> {
    const items = reported.map(({ id, position }) => ({ id, position }));
    const reply = await callRedis(() => positionsScript.run(this.#redis, valuesOf(accountId), items));
    return reply as number[];
  }
}
