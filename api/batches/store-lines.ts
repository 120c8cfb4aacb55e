import { maxFileSeconds } from '../../shared/contract/batch-terms.ts';
import { noMemory } from '../http/bodies/body-errors.ts';
import { FileWriter, type WrittenFile } from '../files/file-writer.ts';
import type { ApiContext } from '../http/request/context.ts';
import { keyHolderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';

/** Two parts of the object, and a line. */
const memoryBytes = 12_000_000;
const memoryWaitMs = 30_000;

/**
 * Stores lines as an input file, like an upload.
 * @param lines with their line breaks
 * @throws AppError like an upload
 */
export async function storeLines(
  services: Services,
  context: ApiContext,
  name: string,
  lines: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<WrittenFile> {
  const { accountId } = keyHolderOf(context);
  const { signal } = context.state;
  const memory = await services.uploadMemory.acquire(accountId, memoryBytes, {
    signal,
    waitMs: memoryWaitMs,
    createError: noMemory,
  });
  const writer = new FileWriter(services, accountId, signal);
  try {
    await writer.begin(0);
    for await (const line of lines) await writer.write(line);
    return await writer.end(name, maxFileSeconds);
  } finally {
    await writer.abort();
    memory.release();
  }
}
