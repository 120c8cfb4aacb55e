import { AppError } from '../../shared/contract/errors.ts';
import { presentJob } from '../../shared/jobs/present-job.ts';
import type { JobRecord } from '../../shared/jobs/job-record.ts';
import { decodeResult } from '../../shared/reply/result.ts';
import { withCost } from '../present/chat-cost.ts';
import { presentEmbeddings } from '../present/embeddings.ts';
import { presentImages } from '../present/images.ts';
import type { ShownJob } from '../present/job-events.ts';
import type { ChunkedBody } from '../present/send-chunks.ts';
import { wrapBody } from '../present/wrap-body.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';
import { cancelWhenGone } from './cancel-when-gone.ts';
import { createFileLinks } from './file-links.ts';
import { sendBody } from './send-body.ts';

/** Answers with a job, and with its response once it has succeeded. */
export async function sendJob(
  services: Services,
  context: ApiContext,
  { job, standing }: ShownJob,
  status = 200,
): Promise<void> {
  const summary = JSON.stringify(presentJob(job, standing)).slice(0, -1);
  const response = await readJobResponse(services, context, job);
  try {
    await sendBody(context, wrapBody(`${summary},"response":`, response.body, '}'), status);
  } finally {
    response.giveBack();
  }
}

/** What a job answers, as the synchronous call would have been answered. */
export interface JobResponse {
  readonly body: Buffer | ChunkedBody;
  readonly giveBack: () => void;
}

const noResponse: JobResponse = { body: Buffer.from('null'), giveBack: () => undefined };

/**
 * The response of a job that has succeeded, from the kept answer of its request; null for any other job.
 * @throws AppError `service_unavailable` where it cannot be read now; `queue_full` where there is no memory for it
 */
export async function readJobResponse(
  services: Services,
  context: ApiContext,
  job: JobRecord,
): Promise<JobResponse> {
  if (job.status !== 'succeeded') return noResponse;
  const request = { requestId: job.id, accountId: job.accountId };
  const { bytes, giveBack } = await cancelWhenGone(
    context,
    services.jobs.attach(request, context.res, job.attempts),
  );
  return { body: presentResponse(services, job, bytes), giveBack };
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
