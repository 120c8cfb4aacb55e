import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import type { BatchFault } from '../../shared/work/batches/batch-record.ts';
import type { InputLost } from '../../shared/work/files/read-lines.ts';
import { loseInput, type SliceAttempt } from './slice-scripts.ts';

const fault: BatchFault = {
  code: 'input_lost',
  line: null,
  message:
    'The input file was lost in the object store while the batch ran. Lines that are in neither result file were not run ' +
    'and not charged; request_counts counts them as failed. Upload the file again, and create a batch of these lines.',
  param: null,
};

export interface LostInputDeps {
  readonly redis: RedisClient;
  readonly objects: Pick<ObjectStore, 'check'>;
  readonly log: Logger;
}

/**
 * Stops a batch whose input is gone from the object store. It fails once the lines that were read have ended.
 * @throws Error if the bucket cannot be reached, so that the input may still be there; the signal's reason
 */
export async function reportLostInput(
  { redis, objects, log }: LostInputDeps,
  slice: SliceAttempt,
  error: InputLost,
  signal: AbortSignal,
): Promise<void> {
  await objects.check(signal);
  log.error({ err: error }, 'the input of a batch is lost');
  await retryThroughOutage(() => loseInput(redis, slice, fault));
}
