import { AppError } from '../../shared/contract/errors.ts';
import type { LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { AwaitedJob } from '../dispatch/dispatch-job.ts';
import type { ApiContext } from '../middleware/request-context.ts';

/** The answer of a job, unless its caller leaves first: then the work is cancelled. */
export async function cancelWhenGone(
  context: ApiContext,
  job: Pick<AwaitedJob, 'answer' | 'cancel'>,
): Promise<LentBuffer> {
  let onClose = (): void => undefined;
  const gone = new Promise<never>((_, reject) => {
    onClose = () => {
      job.cancel();
      reject(new AppError('job_cancelled'));
    };
    if (context.res.destroyed) onClose();
    else context.res.once('close', onClose);
  });
  try {
    return await Promise.race([job.answer, gone]);
  } finally {
    context.res.off('close', onClose);
  }
}
