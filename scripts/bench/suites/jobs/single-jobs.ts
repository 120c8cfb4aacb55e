import { setTimeout as delay } from 'node:timers/promises';
import { uniqueMark } from '../../harness/load/request-writer.ts';
import type { Target } from '../../harness/stack/vendors.ts';
import { percentile } from '../../harness/statistics.ts';
import { jobBody, type SingleJobs } from './jobs-plan.ts';

/** Polling interval. A job's times come from its record, so polling does not lengthen them. */
const pollMs = 25;
const timeoutMs = 120_000;

/** When a job of the small account was created, started and finished, by the gateway's clock. */
export interface SingleJob {
  readonly createdAtMs: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

interface JobResponse {
  readonly id: string;
  readonly status: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
}

/**
 * Submits one job and waits for its end.
 * @throws Error if it does not succeed
 */
export async function runSingleJob(target: Target, number: number): Promise<SingleJob> {
  const body = jobBody.replace(uniqueMark, `small ${number}`);
  const headers = { prefer: 'respond-async', 'content-type': 'application/json' };
  let job = await call(target, '/embeddings', { method: 'POST', body, headers });
  const untilMs = performance.now() + timeoutMs;
  while (job.ended_at === null) {
    if (performance.now() > untilMs)
      throw new Error(`a single job did not finish within ${timeoutMs / 1_000} s`);
    await delay(pollMs);
    job = await call(target, `/jobs/${job.id}`);
  }
  if (job.status !== 'succeeded' || job.started_at === null)
    throw new Error(`a single job ended with status ${job.status}`);
  return {
    createdAtMs: Date.parse(job.created_at),
    startedAtMs: Date.parse(job.started_at),
    endedAtMs: Date.parse(job.ended_at),
  };
}

async function call(
  { host, port, apiKeys }: Target,
  path: string,
  init: RequestInit = {},
): Promise<JobResponse> {
  const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${apiKeys[0]}` };
  const response = await fetch(`http://${host}:${port}/v1${path}`, { ...init, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`a single job: HTTP ${response.status}: ${text.slice(0, 160)}`);
  return JSON.parse(text) as JobResponse;
}

/** @param startedBetween one value per job, in the same order */
export function sumUpSingleJobs(jobs: readonly SingleJob[], startedBetween: readonly number[]): SingleJobs {
  return {
    probes: jobs.length,
    waitMs: sumUp(jobs.map(({ createdAtMs, startedAtMs }) => startedAtMs - createdAtMs)),
    doneMs: sumUp(jobs.map(({ createdAtMs, endedAtMs }) => endedAtMs - createdAtMs)),
    startedBetween: sumUp(startedBetween),
  };
}

function sumUp(values: readonly number[]): { readonly p50: number; readonly most: number } {
  const sorted = values.toSorted((a, b) => a - b);
  return { p50: percentile(sorted, 0.5), most: percentile(sorted, 1) };
}
