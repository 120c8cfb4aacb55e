import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import type { JobRecord } from '../../../shared/jobs/job-record.ts';
import { decodeResult } from '../../../shared/reply/result.ts';
import { withCost } from '../../present/chat-cost.ts';
import { presentEmbeddings } from '../../present/embeddings.ts';
import { presentImages } from '../../present/images.ts';
import { frameJob, type ShownJob } from '../../present/job-text.ts';
import type { ChunkedBody } from '../../present/send-chunks.ts';
import { wrapBody } from '../../present/wrap-body.ts';
import type { ApiContext } from '../../request/context.ts';
import type { Services } from '../../services.ts';
import { awaitResponse } from '../await-response.ts';
import { createFileLinks } from '../files/file-links.ts';
import { sendBody } from '../send-body.ts';

/**
 * Responds with a job, including its response once it has succeeded. If the response cannot be read, the job is still
 * shown, because its outcome and cost are known without it.
 */
export async function sendJob(
  services: Services,
  context: ApiContext,
  shown: ShownJob,
  status = 200,
): Promise<void> {
  const { body, failure, release } = await readJobResponse(services, context, shown.job);
  try {
    const [before, behind] = frameJob(shown, failure);
    await sendBody(context, wrapBody(before, body, behind), status);
  } finally {
    release();
  }
}

/** A job's response, in the form of the synchronous call's response. */
export interface JobResponse {
  readonly body: Buffer | ChunkedBody;
  /** Why the response of a succeeded job cannot be read now. The body is `null` then. */
  readonly failure: AppError | null;
  readonly release: () => void;
}

const noResponse: JobResponse = { body: Buffer.from('null'), failure: null, release: () => undefined };

/**
 * Reads the response of a succeeded job from the kept response of its request; null for any other job. A failure to read
 * it is logged with the call.
 * @throws AppError `job_cancelled` if the client disconnected, `account_banned`
 */
export async function readJobResponse(
  services: Services,
  context: ApiContext,
  job: JobRecord,
): Promise<JobResponse> {
  if (job.status !== 'succeeded') return noResponse;
  const request = { requestId: job.id, accountId: job.accountId };
  try {
    const attached = services.jobs.attach(request, context.res, job.attempts);
    const { bytes, release } = await awaitResponse(attached, context.state.signal);
    try {
      return { body: presentResponse(services, job, bytes), failure: null, release };
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

/** Takes the cost from the job: the response was stored before settlement. */
function presentResponse(services: Services, job: JobRecord, bytes: Buffer): Buffer | ChunkedBody {
  const { id: requestId, model, operation, receipt, format } = job;
  if (receipt === null)
    throw new AppError('internal_error', { message: 'a job has ended without a receipt' });
  const paid = { costNano: String(receipt.costNano), free: receipt.free };
  if (operation === 'chat.completions') return withCost(bytes, receipt.costNano);
  if (operation === 'embeddings') {
    const { header, body } = decodeResult(bytes, 'embedding');
    const answer = { requestId, model, header: { ...header, ...paid }, vectors: body };
    return presentEmbeddings({ ...answer, format: format === 'base64' ? 'base64' : 'float' });
  }
  const { header, body } = decodeResult(bytes, 'image');
  return presentImages(requestId, { ...header, ...paid }, body, createFileLinks(services));
}
