import type { AppError } from '../../shared/contract/errors.ts';
import type { JobError } from '../../shared/contract/jobs.ts';
import type { JobRecord } from '../../shared/jobs/job-record.ts';
import { presentJob, type JobStanding } from '../../shared/jobs/present-job.ts';

/** A job, and where it stands. */
export interface ShownJob {
  readonly job: JobRecord;
  readonly standing: JobStanding;
}

/**
 * The text of a job up to its response, which may be large and follows by itself, and the text after that.
 * @param failure why the response of a job that has succeeded cannot be read now; null where it can, or there is none
 */
export function frameJob(
  { job, standing }: ShownJob,
  failure: AppError | null,
): readonly [before: string, behind: string] {
  const responseError = failure === null ? null : presentFailure(failure);
  const fields = JSON.stringify({ ...presentJob(job, standing), response_error: responseError });
  return [`${fields.slice(0, -1)},"response":`, '}'];
}

const unreadable = 'The response is kept, but it cannot be read now. Ask for the job again shortly.';

function presentFailure({ code, kind, publicMessage }: AppError): JobError {
  // The code's own text would not say that the job itself is done.
  const isGeneral = code === 'service_unavailable' && publicMessage === kind.en;
  return { code, message: isGeneral ? unreadable : publicMessage, type: kind.type };
}
