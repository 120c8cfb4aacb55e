import { AppError } from '../../../shared/contract/errors.ts';
import { formatContentRange, resolveRange, type ByteRange, type RequestedRange } from './byte-range.ts';
import type { ObjectMetadata } from '../../../shared/platform/storage/object-store.ts';
import type { ChunkSource } from '../../http/responses/send-chunks.ts';

/**
 * Bytes per read. Most files need only a few reads. A download whose client does not read occupies no more memory than
 * this.
 */
const rangeBytes = 512 * 1024;

/** A file that is read a part at a time. */
export interface RangeSource {
  /** @throws AppError if the file no longer exists */
  describe(): Promise<Pick<ObjectMetadata, 'objectBytes'>>;
  /**
   * Fills the target with bytes of the file, starting at `at`.
   * @returns the file's length; null if the file no longer exists or ends before `at`
   */
  read(at: number, target: Buffer): Promise<number | null>;
  /** Creates the error for a file that no longer exists. */
  createMissingError(): AppError;
}

/** The range of a file to send, with its first bytes read. */
export interface OpenedRange {
  readonly range: ByteRange;
  /** Length of the whole file. */
  readonly byteLength: number;
  readonly chunks: ChunkSource;
}

/**
 * Reads the first requested bytes, which also yields the file's length. Bytes before the range are not read.
 * @param requested null for the whole file
 * @throws AppError if the file no longer exists or has none of these bytes
 */
export async function openRange(file: RangeSource, requested: RequestedRange | null): Promise<OpenedRange> {
  const { from, end: requestedEnd } = await findOffsets(file, requested);
  const start = Buffer.allocUnsafeSlow(Math.min(rangeBytes, requestedEnd - from));
  const byteLength = await file.read(from, start);
  if (byteLength === null) {
    if (from === 0) throw file.createMissingError();
    throw unsatisfiableRange((await file.describe()).objectBytes);
  }
  if (byteLength === 0 && requested !== null) throw unsatisfiableRange(byteLength);
  const range = { from, end: Math.min(requestedEnd, byteLength) };
  return { range, byteLength, chunks: chunkFile(file, range, start) };
}

async function findOffsets(file: RangeSource, requested: RequestedRange | null): Promise<ByteRange> {
  if (requested === null) return { from: 0, end: Infinity };
  if (!('lastBytes' in requested)) return requested;
  // The offsets of a range of the last bytes depend on the length.
  const { objectBytes } = await file.describe();
  const range = resolveRange(requested, objectBytes);
  if (range === null) throw unsatisfiableRange(objectBytes);
  return range;
}

/** @param start bytes that were already read; the buffer may be longer than the range */
function chunkFile(file: RangeSource, { from, end }: ByteRange, start: Buffer): ChunkSource {
  let at = from;
  return {
    maxChunkBytes: rangeBytes,
    byteLength: end - from,
    async write(target) {
      const length = Math.min(rangeBytes, end - at);
      if (at === from) start.copy(target, 0, 0, length);
      // The file has been deleted since the first read.
      else if (length > 0 && (await file.read(at, target.subarray(0, length))) === null)
        throw new AppError('service_unavailable');
      at += length;
      return length;
    },
  };
}

const unsatisfiableRange = (byteLength: number): AppError =>
  new AppError('validation_failed', {
    status: 416,
    message: `The Range header requests bytes beyond the end of the file, which has ${byteLength} bytes. Request a range within it.`,
    headers: { 'content-range': formatContentRange(null, byteLength) },
  });
