import { AppError, cancelledJobStatus, errorKind } from '../../../shared/contract/errors.ts';
import type { JobRecord } from '../../../shared/work/jobs/job-record.ts';

/** The error that the synchronous call would have had, for callers that wait for the response of a failed job. */
export function describeJobFailure({ id, error, receipt }: JobRecord): AppError {
  if (error === null) throw new TypeError('the job has not failed');
  const { code, message, issues, headers } = error;
  const isCharged = receipt !== null && (receipt.costNano > 0n || receipt.free);
  return new AppError(code, {
    message,
    expose: true,
    issues,
    headers,
    ...(code === 'job_cancelled' && { status: cancelledJobStatus }),
    ...(isCharged && errorKind(code).status >= 500 && { possiblyChargedId: id }),
  });
}

/** The error for callers that want a response which its account has had deleted. */
export const responseDeleted = (): AppError =>
  new AppError('not_found', {
    message:
      'The response was deleted at the request of the account. To process the request again, send it with a new ' +
      'Idempotency-Key or without one.',
    messageRu:
      'Ответ удалён по запросу аккаунта. Чтобы обработать запрос заново, отправьте его с новым Idempotency-Key или без него.',
  });
