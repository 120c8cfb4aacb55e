import type { AppError } from '../../shared/contract/errors.ts';
import type { JobError } from '../../shared/contract/jobs.ts';
import type { JobRecord } from '../../shared/work/jobs/job-record.ts';
import { presentJob, type JobEstimate } from '../../shared/work/jobs/present-job.ts';

/** A job with its position and ETA. */
export interface JobView {
  readonly job: JobRecord;
  readonly estimate: JobEstimate;
}

/**
 * Returns the two texts that surround a job's response. The response may be large and is sent separately.
 * @param failure why the response of a succeeded job cannot be read; null if it can, or if there is none
 * @param publicUrl of the gateway
 */
export function frameJob(
  { job, estimate }: JobView,
  failure: AppError | null,
  publicUrl: string,
): readonly [before: string, end: string] {
  const responseError = failure === null ? null : presentFailure(failure);
  const fields = JSON.stringify({ ...presentJob(job, estimate, publicUrl), response_error: responseError });
  return [`${fields.slice(0, -1)},"response":`, '}'];
}

const unreadable = 'The response is stored but cannot be read right now. Retrieve the job again shortly.';

function presentFailure({ code, kind, publicMessage }: AppError): JobError {
  // The general text of the code does not explain that the job itself has succeeded.
  const isGeneral = code === 'service_unavailable' && publicMessage === kind.en;
  return { code, message: isGeneral ? unreadable : publicMessage, type: kind.type };
}
