import { AppError } from '../../../shared/contract/errors.ts';
import type { JobPath, JobSummary } from '../../../shared/contract/jobs.ts';
import { operations } from '../../contract/operations.ts';
import { presentJob } from '../../../shared/work/jobs/present-job.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls, limitWaits } from '../../http/middleware/limit-account-calls.ts';
import type { JobView } from '../../jobs/job-text.ts';
import { waitForEnd } from '../../jobs/wait-for-end.ts';
import { describePage, writePage } from '../../responses/write-page.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { holderOf } from '../../http/request/holder.ts';
import { encodePieces, readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { sendBody } from '../../responses/send-body.ts';
import { sendJob } from '../../responses/send-job.ts';

/** How long a request to cancel a running job waits for the job to end (ms). */
const cancelWaitMs = 2_000;

const jobId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Context of a request with a job's id in its path. */
export type JobContext = ApiContext & { readonly state: { readonly path: JobPath } };

/** Finds the job in the path. @throws AppError `not_found`, even if another account has such a job */
export async function findJob(services: Services, context: JobContext): Promise<JobView> {
  const { accountId } = holderOf(context);
  const id = readJobId(context);
  const find = () => services.durableJobs.find(accountId, id);
  const view = await readFromRedis(services, readerOf(context), 'one', find);
  if (view === null) throw noSuchJob();
  return view;
}

/** Like `findJob`, for a caller that repeats it until something changes. */
export async function pollJob({ jobPolls }: Services, context: JobContext): Promise<JobView> {
  const view = await jobPolls.poll(holderOf(context).accountId, readJobId(context));
  if (view === null) throw noSuchJob();
  return view;
}

export const getJob = defineEndpoint(
  operations.getJob,
  [authenticateAccount, limitWaits],
  (services) => async (context) => {
    const { wait = 0 } = context.state.query;
    await sendJob(services, context, await findOnceEnded(services, context, wait * 1_000));
  },
);

export const listJobs = defineEndpoint(
  operations.listJobs,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { page, page_size: pageSize, status = null } = context.state.query;
    const { accountId } = holderOf(context);
    const reader = readerOf(context);
    const bytes = await readFromRedis(services, reader, 'list', async () => {
      const { total, jobs } = await services.durableJobs.list(accountId, status, { page, pageSize });
      const present = ({ job, estimate }: JobView): JobSummary =>
        presentJob(job, estimate, services.publicUrl);
      return await encodePieces(writePage(describePage(total, page, pageSize), jobs, present), reader);
    });
    await sendBody(context, bytes);
  },
);

const cancel = (services: Services) => async (context: JobContext) => {
  const id = readJobId(context);
  // Not in a turn of reads: the job costs money until it is cancelled.
  if (!(await services.durableJobs.cancel(holderOf(context).accountId, id))) throw noSuchJob();
  await sendJob(services, context, await findOnceEnded(services, context, cancelWaitMs));
};

export const cancelJob = defineEndpoint(operations.cancelJob, [authenticateAccount, limitCalls], cancel);

export const cancelJobByPost = defineEndpoint(
  operations.cancelJobByPost,
  [authenticateAccount, limitCalls],
  cancel,
);

/** Returns the job once it has ended, or in its current state if that takes longer. */
async function findOnceEnded(services: Services, context: JobContext, waitMs: number): Promise<JobView> {
  const { jobPolls, durableJobs } = services;
  const { signal } = context.state;
  const first = await findJob(services, context);
  const view = await waitForEnd(jobPolls, first, { waitMs, signal, closing: durableJobs.closing });
  if (view === null) throw noSuchJob();
  return view;
}

/** Throws immediately for malformed ids, so that they are not looked up. */
export function readJobId({ state }: JobContext): string {
  const { job_id: id } = state.path;
  if (!jobId.test(id)) throw noSuchJob();
  return id;
}

export const noSuchJob = (): AppError =>
  new AppError('not_found', {
    message:
      'This account has no such job. Jobs are stored for 24 hours after they end; GET /v1/jobs lists them.',
    messageRu:
      'В этом аккаунте нет такого задания. Задания хранятся 24 часа после завершения. Список заданий: GET /v1/jobs.',
  });
