import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { JobRecord } from '../../shared/jobs/job-record.ts';
import { decodeResult } from '../../shared/reply/result.ts';
import { withCost } from '../present/chat-cost.ts';
import { presentEmbeddings } from '../present/embeddings.ts';
import { presentImages } from '../present/images.ts';
import { frameJob, type ShownJob } from '../present/job-text.ts';
import type { ChunkedBody } from '../present/send-chunks.ts';
import { wrapBody } from '../present/wrap-body.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';
import { cancelWhenGone } from './cancel-when-gone.ts';
import { createFileLinks } from './file-links.ts';
import { sendBody } from './send-body.ts';

/**
 * Answers with a job, and with its response once it has succeeded. The job is shown also where its response cannot be read:
 * what became of it, and what it cost, is known without that.
 */
export async function sendJob(
  services: Services,
  context: ApiContext,
  shown: ShownJob,
  status = 200,
): Promise<void> {
  const { body, failure, giveBack } = await readJobResponse(services, context, shown.job);
  try {
    const [before, behind] = frameJob(shown, failure);
    await sendBody(context, wrapBody(before, body, behind), status);
  } finally {
    giveBack();
  }
}

/** What a job answers, as the synchronous call would have been answered. */
export interface JobResponse {
  readonly body: Buffer | ChunkedBody;
  /** Why the response of a job that has succeeded cannot be read now: the body is `null` then. */
  readonly failure: AppError | null;
  readonly giveBack: () => void;
}

const noResponse: JobResponse = { body: Buffer.from('null'), failure: null, giveBack: () => undefined };

/**
 * The response of a job that has succeeded, from the kept answer of its request; null for any other job. A failure to read
 * it is logged with the call.
 * @throws AppError `job_cancelled` where the caller has left, `account_banned`
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
    const { bytes, giveBack } = await cancelWhenGone(context, attached);
    try {
      return { body: presentResponse(services, job, bytes), failure: null, giveBack };
    } catch (error) {
      giveBack();
      throw error;
    }
  } catch (error) {
    const failure = toAppError(error);
    if (failure.status < 500) throw failure;
    context.state.error = failure;
    return { ...noResponse, failure };
  }
}

/** What was debited is told by the job: the answer was kept before it was settled. */
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
