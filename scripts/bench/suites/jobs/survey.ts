import { parseJob, findTransition } from '../../../../shared/work/jobs/job-record.ts';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';

/** Records per read. */
const pageSize = 500;

/** A period in which job starts are counted, both ends included. */
export interface StartWindow {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Survey {
  readonly jobs: number;
  readonly firstStartAtMs: number;
  readonly lastEndAtMs: number;
  /** How many jobs started in each window. */
  readonly startedWithin: readonly number[];
  readonly retaken: number;
  readonly faults: readonly string[];
}

/** Reads the records of all finished jobs of an account, one page at a time. */
export async function surveyJobs(
  redis: RedisClient,
  accountId: string,
  windows: readonly StartWindow[],
): Promise<Survey> {
  const list = redisKeys.jobsList(accountId, 'all');
  const startedWithin = windows.map(() => 0);
  const problems = new Map<string, number>();
  const countProblem = (problem: string): void => {
    problems.set(problem, (problems.get(problem) ?? 0) + 1);
  };
  let jobs = 0;
  let retaken = 0;
  let firstStartAtMs = Infinity;
  let lastEndAtMs = -Infinity;
  for (let from = 0; ; from += pageSize) {
    const ids = await redis.zrange(list, String(from), String(from + pageSize - 1));
    if (ids.length === 0) break;
    const records = await Promise.all(ids.map((id) => redis.hgetall(redisKeys.job(accountId, id))));
    for (const [i, fields] of records.entries()) {
      jobs += 1;
      const job = parseJob(accountId, ids[i]!, fields);
      if (job === null) {
        countProblem('lost');
        continue;
      }
      if (job.status !== 'succeeded')
        countProblem(`${job.status}${job.error === null ? '' : ` (${job.error.code})`}`);
      if (job.attempts > 1) retaken += 1;
      const ends = job.transitions.filter(({ status }) => status !== 'queued' && status !== 'active');
      if (ends.length !== 1) countProblem(`with ${ends.length} ends`);
      const startAtMs = findTransition(job, 'active') ?? Infinity;
      firstStartAtMs = Math.min(firstStartAtMs, startAtMs);
      lastEndAtMs = Math.max(lastEndAtMs, ends.at(-1)?.atMs ?? -Infinity);
      for (const [at, { fromMs, untilMs }] of windows.entries())
        if (startAtMs >= fromMs && startAtMs <= untilMs) startedWithin[at]! += 1;
    }
  }
  const faults = [...problems].map(([problem, count]) => `${count} jobs ${problem}`);
  return { jobs, firstStartAtMs, lastEndAtMs, startedWithin, retaken, faults };
}
