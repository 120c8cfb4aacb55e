import type { PooledBuffer } from '../../shared/platform/runtime/buffer-pool.ts';
import type { AwaitedJob } from '../requests/dispatch/job-dispatcher.ts';

/**
 * Resolves to the response of a request. Cancels the request if the client disconnects first.
 * @param signal aborted when the client disconnects
 * @throws AppError the error of the request; `job_cancelled`
 */
export async function awaitResponse(
  { answer, cancel }: Pick<AwaitedJob, 'answer' | 'cancel'>,
  signal: AbortSignal,
): Promise<PooledBuffer> {
  const onAbort = (): void => cancel();
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await answer;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
