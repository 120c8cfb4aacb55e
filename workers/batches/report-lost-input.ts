import { setTimeout as delay } from 'node:timers/promises';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import type { BatchFault } from '../../shared/work/batches/batch-record.ts';
import type { InputLost } from '../../shared/work/files/read-lines.ts';
import type { BatchPlan } from './batch-plan.ts';
import { loseInput, type SliceAttempt } from './slice-scripts.ts';

const fault: BatchFault = {
  code: 'input_lost',
  line: null,
  message:
    'The input file was lost in the object store while the batch ran. Lines that are in neither result file were not run ' +
    'and not charged; request_counts counts them as failed. Upload the file again, and create a batch of these lines.',
  param: null,
};

/** A store that has just failed may say for a moment that an object is not there. */
const secondLookMs = 2_000;

export interface LostInputDeps {
  readonly redis: RedisClient;
  readonly objects: Pick<ObjectStore, 'check' | 'describe'>;
  readonly log: Logger;
}

/**
 * Stops a batch whose input is gone from the object store. It fails once the lines that were read have ended.
 * @throws Error if the bucket cannot be reached, or has the input after all; the signal's reason
 */
export async function reportLostInput(
  { redis, objects, log }: LostInputDeps,
  slice: SliceAttempt,
  { inputKey, inputBytes }: Pick<BatchPlan, 'inputKey' | 'inputBytes'>,
  error: InputLost,
  signal: AbortSignal,
): Promise<void> {
  await objects.check(signal);
  await delay(secondLookMs, undefined, { signal });
  const found = await objects.describe(inputKey, signal);
  if (found?.objectBytes === inputBytes) throw error;
  log.error({ err: error }, 'the input of a batch is lost');
  await retryThroughOutage(() => loseInput(redis, slice, fault));
}
