import { setTimeout as delay } from 'node:timers/promises';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import type { BatchRecord } from '../../shared/work/batches/batch-record.ts';
import { toBatchId } from '../../shared/work/batches/batches.ts';
import { planBatch, type BatchOptions } from '../../shared/work/batches/plan-batch.ts';
import { deleteUnused, type WrittenFile } from '../../shared/work/files/file-writer.ts';
import { storeLines } from '../../shared/work/files/store-lines.ts';
import { admit } from '../admission/admit.ts';
import { acquireUploadMemory } from '../http/bodies/upload-memory.ts';
import type { ApiContext } from '../http/request/context.ts';
import { holderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';

/**
 * Admits and creates a batch of a file, or finds the one that the same request created before.
 * @param onAttached called if the batch is that of an earlier request
 */
export async function createFromFile(
  services: Services,
  context: ApiContext,
  input: WrittenFile,
  options: BatchOptions,
  onAttached: () => void = () => undefined,
): Promise<BatchRecord> {
  const { work, estimate } = planBatch(services.catalog, input, options);
  const admitted = await admit(services, context, estimate);
  if (admitted.outcome === 'attached') {
    onAttached();
    return await findOnceCreated(services, admitted.accountId, admitted.requestId);
  }
  return await services.batches.create(admitted.request, work);
}

const creationPolls = 50;
const creationPollMs = 100;

/** The first request with this Idempotency-Key may be about to create its batch. */
async function findOnceCreated(
  services: Services,
  accountId: string,
  requestId: string,
): Promise<BatchRecord> {
  for (let i = 0; i < creationPolls; i++) {
    const batch = await services.batches.find(accountId, toBatchId(requestId));
    if (batch !== null) return batch;
    await delay(creationPollMs);
  }
  throw new AppError('service_unavailable', { message: 'the batch of an earlier request was not created' });
}

export interface LinesToStore {
  /** The name of their file. */
  readonly name: string;
  readonly pieces: AsyncIterable<Buffer>;
}

/**
 * Stores lines as a file, and creates a batch of it. If the batch is rejected, or was created by an earlier request, the
 * file is deleted again.
 */
export async function createFromLines(
  services: Services,
  context: ApiContext,
  { name, pieces }: LinesToStore,
  options: BatchOptions,
): Promise<BatchRecord> {
  const { accountId } = holderOf(context);
  const { signal } = context.state;
  const memory = await acquireUploadMemory(services, context);
  let input: WrittenFile;
  try {
    input = await storeLines(services, name, pieces, { accountId, signal });
  } finally {
    memory.release();
  }
  const { id } = input.file;
  const deleteInput = (): void =>
    runInBackground(
      deleteUnused(services.files, accountId, id),
      'deleting the input of no batch',
      services.log,
    );
  try {
    return await createFromFile(services, context, input, options, deleteInput);
  } catch (error) {
    // If Redis did not reply, the batch may exist, and can be retried only with its input.
    if (toAppError(error).status < 500) deleteInput();
    throw error;
  }
}
