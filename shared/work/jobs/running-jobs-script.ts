import type { QueueName } from '../queue/job-kinds.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';
import type { JobLine, RunningJob, TurnQueue } from './job-line.ts';
import type { JobOutlook, WaitingAccount } from './job-outlook.ts';
import { averageServiceMs, maxStoredRuns, measuredJobs, type EndedRun } from './service-time.ts';

/** How long the service times of an unused model queue stay meaningful. */
const serviceTimesLifetimeMs = 7 * 24 * 3_600_000;

const leaseScript = new LuaScript(
  new URL('./lease-running-jobs.lua', import.meta.url),
  ['index', 'runningPrefix', 'startedPrefix', 'leaseMs', 'isStart'],
  { itemNames: ['model', 'id'] },
);
const endScript = new LuaScript(
  new URL('./end-running-job.lua', import.meta.url),
  ['running', 'started', 'serviceTimes', 'id', 'serviceMs'],
  { constants: { maxStoredRuns, serviceTimesLifetimeMs } },
);
const outlookScript = new LuaScript(new URL('./read-outlook.lua', import.meta.url), [
  'index',
  'turns',
  'accounts',
  'running',
  'started',
  'serviceTimes',
  'model',
]);
const surveyScript = new LuaScript(new URL('./survey-turns.lua', import.meta.url), ['maxAccounts'], {
  itemNames: ['index', 'runningPrefix', 'turnsPrefix'],
});

const leaseKeys = (queue: QueueName) => ({
  index: redisKeys.jobIndex(queue),
  runningPrefix: redisKeys.jobsRunning(queue, ''),
  startedPrefix: redisKeys.jobsStarted(queue, ''),
});

export async function runStart(
  redis: RedisClient,
  { line, jobId }: RunningJob,
  leaseMs: number,
): Promise<void> {
  const values = { ...leaseKeys(line.queue), leaseMs, isStart: 1 };
  await leaseScript.run(redis, values, [{ model: line.model, id: jobId }]);
}

/** @param jobs must all belong to that queue */
export async function runRenew(
  redis: RedisClient,
  queue: QueueName,
  jobs: readonly RunningJob[],
  leaseMs: number,
): Promise<void> {
  const items = jobs.map(({ line, jobId }) => ({ model: line.model, id: jobId }));
  await leaseScript.run(redis, { ...leaseKeys(queue), leaseMs, isStart: 0 }, items);
}

export async function runEnd(
  redis: RedisClient,
  { queue, model }: JobLine,
  jobId: string,
  serviceMs: number | null,
): Promise<void> {
  await endScript.run(redis, {
    running: redisKeys.jobsRunning(queue, model),
    started: redisKeys.jobsStarted(queue, model),
    serviceTimes: redisKeys.jobServiceTimes(queue, model),
    id: jobId,
    serviceMs: serviceMs === null ? '' : Math.max(0, Math.round(serviceMs)),
  });
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
  const reply = await outlookScript.run(redis, {
    index: redisKeys.jobIndex(queue),
    turns: redisKeys.jobTurns(queue, model),
    accounts: redisKeys.jobAccounts(queue, model),
    running: redisKeys.jobsRunning(queue, model),
    started: redisKeys.jobsStarted(queue, model),
    serviceTimes: redisKeys.jobServiceTimes(queue, model),
    model,
  });
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

/** The jobs or batches of one model in one queue. */
export interface SurveyedModel {
  readonly model: string;
  readonly waiting: number;
  readonly running: number;
  /** Some of the accounts that wait, those whose turn comes next. */
  readonly accountIds: readonly string[];
}

export interface TurnSurvey {
  /** According to Redis's clock. */
  readonly nowMs: number;
  /** Per queue, in the order in which they were asked for. */
  readonly queues: readonly (readonly SurveyedModel[])[];
}

type SurveyReply = [nowMs: string, queues: (string | number | string[])[][]];

export async function runSurvey(
  redis: RedisClient,
  queues: readonly TurnQueue[],
  maxAccounts: number,
): Promise<TurnSurvey> {
  const items = queues.map((queue) => ({
    index: redisKeys.jobIndex(queue),
    runningPrefix: redisKeys.jobsRunning(queue, ''),
    turnsPrefix: redisKeys.jobTurns(queue, ''),
  }));
  const [nowMs, reply] = (await surveyScript.run(redis, { maxAccounts }, items)) as SurveyReply;
  return {
    nowMs: Number(nowMs),
    queues: reply.map((fields) =>
      Array.from({ length: fields.length / 4 }, (_, i) => ({
        model: String(fields[4 * i]),
        waiting: Number(fields[4 * i + 1]),
        running: Number(fields[4 * i + 2]),
        accountIds: fields[4 * i + 3] as string[],
      })),
    ),
  };
}
