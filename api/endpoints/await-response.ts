import type { PooledBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { AwaitedJob } from '../dispatch/job-dispatcher.ts';

/**
 * Resolves to the response of a request. Cancels the request if the client disconnects first.
 * @param signal the caller's
 * @throws AppError the request's, `job_cancelled`
 */
export async function awaitResponse(
  { answer, cancel }: Pick<AwaitedJob, 'answer' | 'cancel'>,
  signal: AbortSignal,
): Promise<PooledBuffer> {
  const leave = (): void => cancel();
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  try {
    return await answer;
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
