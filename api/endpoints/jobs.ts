import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../shared/contract/errors.ts';
import type { JobListQuery } from '../../shared/contract/jobs.ts';
import { hasEnded } from '../../shared/jobs/job-record.ts';
import { presentJob } from '../../shared/jobs/present-job.ts';
import { holderOf } from '../middleware/authenticate.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { describePage } from '../present/history.ts';
import type { ShownJob } from '../present/job-text.ts';
import type { Services } from '../services.ts';
import { sendJob } from './send-job.ts';

/** How long a caller who cancels a running job waits for its end, and how often it is looked for. */
const cancelWaitMs = 2_000;
const cancelLookMs = 50;

const jobId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The job that the address names. @throws AppError `not_found`, also for a job of another account */
export async function findJob({ durableJobs }: Services, context: ApiContext): Promise<ShownJob> {
  const { accountId } = holderOf(context);
  const shown = await durableJobs.find(accountId, readJobId(context));
  if (shown === null) throw noSuchJob();
  return shown;
}

export function getJob(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    await sendJob(services, context, await findJob(services, context));
  };
}

export function listJobs({ durableJobs }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { page, page_size: pageSize, status = null } = context.state.query as JobListQuery;
    const { total, jobs } = await durableJobs.list(holderOf(context).accountId, status, { page, pageSize });
    context.body = {
      ...describePage(total, page, pageSize),
      items: jobs.map(({ job, standing }) => presentJob(job, standing)),
    };
  };
}

export function cancelJob(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const id = readJobId(context);
    if (!(await services.durableJobs.cancel(holderOf(context).accountId, id))) throw noSuchJob();
    await sendJob(services, context, await waitForEnd(services, context));
  };
}

/** The job once it has ended, or as it is when that takes too long. */
async function waitForEnd(services: Services, context: ApiContext): Promise<ShownJob> {
  const untilMs = performance.now() + cancelWaitMs;
  const signal = callerSignal(context.res);
  for (;;) {
    const shown = await findJob(services, context);
    if (hasEnded(shown.job) || performance.now() > untilMs) return shown;
    // The delay rejects only when the caller has left, and then nobody waits for the response.
    await delay(cancelLookMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** What is no id is not looked for. */
function readJobId({ params }: ApiContext): string {
  const { job_id: id = '' } = params as { readonly job_id?: string };
  if (!jobId.test(id)) throw noSuchJob();
  return id;
}

const noSuchJob = (): AppError =>
  new AppError('not_found', {
    message:
      'There is no such job in this account. Jobs are kept for 24 hours after they ended; GET /v1/jobs lists them.',
  });
