import { maxFileSeconds } from '../../contract/batch-terms.ts';
import { FileWriter, type FileWriterDeps, type WrittenFile } from './file-writer.ts';

export interface StoreLinesOptions {
  readonly accountId: string;
  /** Aborted when the file is no longer wanted. */
  readonly signal: AbortSignal;
}

/**
 * Stores lines as the input of a batch, as an upload stores them. Nothing is kept if it fails.
 * @param pieces of the lines, with their line breaks
 * @throws AppError `payload_too_large`, `service_unavailable`; the signal's reason
 */
export async function storeLines(
  deps: FileWriterDeps,
  name: string,
  pieces: AsyncIterable<Buffer>,
  { accountId, signal }: StoreLinesOptions,
): Promise<WrittenFile> {
  const writer = new FileWriter(deps, accountId, signal);
  try {
    await writer.begin(0);
    for await (const piece of pieces) await writer.write(piece);
    return await writer.end(name, maxFileSeconds);
  } finally {
    await writer.abort();
  }
}
