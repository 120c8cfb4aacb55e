import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../../shared/contract/errors.ts';
import type { JobPath } from '../../../shared/contract/jobs.ts';
import { operations } from '../../../shared/contract/operations.ts';
import { hasEnded } from '../../../shared/jobs/job-record.ts';
import { presentJob } from '../../../shared/jobs/present-job.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticate } from '../../middleware/authenticate.ts';
import { limitCalls } from '../../middleware/limit-account-calls.ts';
import { describePage } from '../../present/history.ts';
import type { JobView } from '../../present/job-text.ts';
import type { ApiContext } from '../../request/context.ts';
import { keyHolderOf } from '../../request/holder.ts';
import type { Services } from '../../services.ts';
import { sendJob } from './send-job.ts';

/** How long a request to cancel a running job waits for the job to end, and the interval between polls (ms). */
const cancelWaitMs = 2_000;
const cancelPollMs = 50;

const jobId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Context of a request with a job's id in its path. */
export type JobContext = ApiContext & { readonly state: { readonly path: JobPath } };

/** Finds the job in the path. @throws AppError `not_found`, even if another account has such a job */
export async function findJob({ durableJobs }: Services, context: JobContext): Promise<JobView> {
  const { accountId } = keyHolderOf(context);
  const view = await durableJobs.find(accountId, readJobId(context));
  if (view === null) throw noSuchJob();
  return view;
}

export const getJob = defineEndpoint(
  operations.getJob,
  [authenticate, limitCalls],
  (services) => async (context) => {
    await sendJob(services, context, await findJob(services, context));
  },
);

export const listJobs = defineEndpoint(
  operations.listJobs,
  [authenticate, limitCalls],
  ({ durableJobs }) =>
    async (context) => {
      const { page, page_size: pageSize, status = null } = context.state.query;
      const { total, jobs } = await durableJobs.list(keyHolderOf(context).accountId, status, {
        page,
        pageSize,
      });
      context.body = {
        ...describePage(total, page, pageSize),
        items: jobs.map(({ job, estimate }) => presentJob(job, estimate)),
      };
    },
);

export const cancelJob = defineEndpoint(
  operations.cancelJob,
  [authenticate, limitCalls],
  (services) => async (context) => {
    const id = readJobId(context);
    if (!(await services.durableJobs.cancel(keyHolderOf(context).accountId, id))) throw noSuchJob();
    await sendJob(services, context, await waitForEnd(services, context));
  },
);

/** Returns the job once it has ended, or in its current state if that takes too long. */
async function waitForEnd(services: Services, context: JobContext): Promise<JobView> {
  const untilMs = performance.now() + cancelWaitMs;
  const { signal } = context.state;
  for (;;) {
    const view = await findJob(services, context);
    if (hasEnded(view.job) || performance.now() > untilMs) return view;
    // The delay rejects only if the client has disconnected and no longer needs the response.
    await delay(cancelPollMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** Throws immediately for malformed ids, so that they are not looked up. */
export function readJobId({ state }: JobContext): string {
  const { job_id: id } = state.path;
  if (!jobId.test(id)) throw noSuchJob();
  return id;
}

const noSuchJob = (): AppError =>
  new AppError('not_found', {
    message:
      'There is no such job in this account. Jobs are kept for 24 hours after they ended; GET /v1/jobs lists them.',
  });
