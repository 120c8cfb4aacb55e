import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { jobPath } from '../../shared/contract/jobs.ts';
import type { JobRecord } from '../../shared/work/jobs/job-record.ts';
import { frameJob, type JobView } from '../jobs/job-text.ts';
import { responseDeleted } from '../requests/stored-responses/job-failure.ts';
import type { ChunkedBody } from '../../shared/responses/chunked-body.ts';
import { presentResponse } from '../../shared/responses/present-response.ts';
import { wrapBody } from '../../shared/responses/wrap-body.ts';
import type { ApiContext } from '../http/request/context.ts';
import type { Services } from '../services.ts';
import { awaitResponse } from './await-response.ts';
import { createFileLinks } from '../../shared/responses/file-links.ts';
import { sendBody } from './send-body.ts';

/**
 * Responds with a job, including the job's response if it has succeeded. If that response cannot be read, the job is
 * sent without it, because its outcome and cost are known anyway.
 */
export async function sendJob(
  services: Services,
  context: ApiContext,
  view: JobView,
  { status = 200, response }: { readonly status?: number; readonly response?: JobResponse } = {},
): Promise<void> {
  const { body, failure, release } = response ?? (await readJobResponse(services, context, view.job));
  try {
    const [before, end] = frameJob(view, failure, services.publicUrl);
    await sendBody(context, wrapBody(before, body, end), status);
  } finally {
    release();
  }
}

/**
 * Responds to a request with the job that processes it.
 * @param failure why the job's response cannot be read, if that is known, so that it is not read again
 */
export async function sendAccepted(
  services: Services,
  context: ApiContext,
  view: JobView,
  failure?: AppError,
): Promise<void> {
  context.set({ location: jobPath(view.job.id), 'preference-applied': 'respond-async' });
  await sendJob(services, context, view, {
    status: 202,
    ...(failure !== undefined && { response: { ...noResponse, failure } }),
  });
}

/** A job's response, in the same form as for a synchronous call. */
export interface JobResponse {
  readonly body: Buffer | ChunkedBody;
  /** Why the response of a succeeded job cannot be read: for now, or because it was deleted. The body is then `null`. */
  readonly failure: AppError | null;
  readonly release: () => void;
}

const noResponse: JobResponse = { body: Buffer.from('null'), failure: null, release: () => undefined };

/**
 * Reads the stored response of a succeeded job; the body is `null` for any other job. A failure to read it is logged
 * with the call.
 * @throws AppError `job_cancelled` if the client disconnected, `account_banned`
 */
export async function readJobResponse(
  services: Services,
  context: ApiContext,
  job: JobRecord,
): Promise<JobResponse> {
  if (job.status !== 'succeeded') return noResponse;
  if (job.isResponseDeleted) return { ...noResponse, failure: responseDeleted() };
  const request = { requestId: job.id, accountId: job.accountId };
  try {
    const attached = services.jobs.attach(request, context.res, job.attempts);
    const { bytes, release } = await awaitResponse(attached, context.state.signal);
    try {
      return { body: presentOfJob(services, job, bytes), failure: null, release };
    } catch (error) {
      release();
      throw error;
    }
  } catch (error) {
    const failure = toAppError(error);
    if (failure.status < 500) throw failure;
    context.state.error = failure;
    return { ...noResponse, failure };
  }
}

/** Sets the cost from the job record, because the response was stored before settlement. */
function presentOfJob({ publicUrl, config }: Services, job: JobRecord, bytes: Buffer): Buffer | ChunkedBody {
  const { id: requestId, model, operation, receipt, format } = job;
  if (receipt === null) throw new AppError('internal_error', { message: 'a succeeded job has no receipt' });
  const linkOf = createFileLinks(publicUrl, config.s3.publicUrl);
  return presentResponse({ requestId, model, operation, format, receipt }, bytes, linkOf);
}
