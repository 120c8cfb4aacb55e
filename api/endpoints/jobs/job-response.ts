// decision 0080
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import type { JobRecord } from '../../../shared/work/jobs/job-record.ts';
import { deleteObjects } from '../../../shared/work/replies/response-store.ts';
import { decodeResult } from '../../../shared/work/replies/result.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import type { Services } from '../../services.ts';
import { findJob, noSuchJob } from './jobs.ts';

/** The longest that the object store may take to delete images. */
const deleteTimeoutMs = 15_000;

/**
 * Deletes the response of an ended job. The job says so before anything is gone, so that no reader finds half of it.
 * Every step can be repeated: a caller whose call failed sends it again.
 */
export const deleteJobResponse = defineEndpoint(
  operations.deleteJobResponse,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { job } = await findJob(services, context);
    const { id, accountId, attempts } = job;
    const outcome = await services.durableJobs.markResponseDeleted(accountId, id);
    if (outcome === 'unknown') throw noSuchJob();
    if (outcome === 'unfinished') throw unfinished();
    // The links are in the response, so they are deleted before it.
    await deleteImages(services, job);
    const request = { requestId: id, accountId, jobAttempt: Math.max(1, attempts) };
    await services.storedResponses.delete(request);
    context.status = 204;
  },
);

async function deleteImages(services: Services, job: JobRecord): Promise<void> {
  const keys = await listImages(services, job);
  try {
    await deleteObjects(services.objects, keys, AbortSignal.timeout(deleteTimeoutMs));
  } catch (error) {
    throw new AppError('service_unavailable', { cause: error });
  }
}

/** More than the header of a response has, except with very long descriptions of images. */
const usualHeaderBytes = 64 * 1024;
const lengthBytes = 4;

/** Returns the keys of the images to which the stored response links; none if it is gone already. */
async function listImages(
  { storedResponses }: Services,
  { id, accountId, queue }: JobRecord,
): Promise<string[]> {
  if (queue !== 'image') return [];
  const request = { requestId: id, accountId };
  let start = await storedResponses.readStart(request, usualHeaderBytes);
  if (start === null || start.length < lengthBytes) return [];
  const headerBytes = lengthBytes + start.readUInt32LE(0);
  if (headerBytes > start.length) start = await storedResponses.readStart(request, headerBytes);
  if (start === null || start.length < headerBytes) return [];
  return decodeResult(start, 'image').header.images.flatMap(({ objectKey }) => objectKey ?? []);
}

const unfinished = (): AppError =>
  invalidField(
    ['path', 'job_id'],
    'The job has not ended, so it has no response yet. Cancel it, or wait until it has ended.',
    { msgRu: 'Задание ещё не завершено, и ответа у него нет. Отмените его или дождитесь завершения.' },
  );
