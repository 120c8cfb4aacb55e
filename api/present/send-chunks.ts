import type { Writable } from 'node:stream';
import { BufferPool } from '../../shared/runtime/buffer-pool.ts';

/** A body that is made, or read, as its reader takes it. */
export interface ChunkSource {
  /** What `write` needs room for at the most. */
  readonly maxChunkBytes: number;
  /** Of the whole body, where that is known. */
  readonly byteLength?: number;
  /** Writes the next bytes into the target. @returns how many; 0 at the end */
  write(target: Buffer): number | Promise<number>;
}

/** One that is made of what is there already. */
export interface ChunkedBody extends ChunkSource {
  write(target: Buffer): number;
}

const buffers = new BufferPool(16 * 1024 * 1024);

/**
 * Writes a body to its end, one chunk at a time, however long its reader takes. One that takes nothing is cut by the stall
 * guard, and so is one that keeps others waiting.
 * The end leaves together with the last chunk where the length is known, so that a caller who has the whole of it finds
 * the connection free.
 * @param nextTurn waits for a turn at making the next chunk
 * @throws the stream's error when its reader has gone; what `write` throws
 */
export async function sendChunks(
  stream: Writable,
  body: ChunkSource,
  nextTurn: () => Promise<void>,
): Promise<void> {
  let left = body.byteLength ?? Infinity;
  const sendNext = async (buffer: Buffer): Promise<boolean> => {
    const length = await body.write(buffer);
    left -= length;
    const isLast = length === 0 || left <= 0;
    await write(stream, buffer.subarray(0, length), isLast);
    return isLast;
  };
  while (!(await buffers.use(body.maxChunkBytes, sendNext))) {
    // A reader that keeps up would else be given everything in this turn, and all others would wait for the end of it.
    await nextTurn();
  }
}

/** Resolves when the bytes are the system's. */
async function write(stream: Writable, bytes: Buffer, isLast: boolean): Promise<void> {
  // The end of a response that is closed already says nothing of it.
  if (stream.destroyed) throw new Error(readerHasGone);
  await new Promise<void>((resolve, reject) => {
    const onClose = (): void => reject(new Error(readerHasGone));
    const onWritten = (error?: Error | null): void => {
      stream.off('close', onClose);
      if (error) reject(error);
      else resolve();
    };
    stream.once('close', onClose);
    if (isLast) stream.end(bytes, onWritten);
    else stream.write(bytes, onWritten);
  });
}

const readerHasGone = 'the reader has gone';

const bytesPerChunk = 256 * 1024;

/** Bytes that are there already, as a body that leaves in chunks. */
export function chunkBuffer(bytes: Buffer): ChunkedBody {
  let at = 0;
  return {
    maxChunkBytes: bytesPerChunk,
    byteLength: bytes.length,
    write(target) {
      const length = bytes.copy(target, 0, at, at + bytesPerChunk);
      at += length;
      return length;
    },
  };
}
