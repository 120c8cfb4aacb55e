// decision 0032
import type { Writable } from 'node:stream';
import { BufferPool } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { ChunkSource } from '../../../shared/responses/chunked-body.ts';

const buffers = new BufferPool(16 * 1024 * 1024);

/**
 * Writes a whole body, one chunk at a time, at the client's pace. The stall guard disconnects clients that read
 * nothing, or that read slowly and block others. If the length is known, the stream ends together with the last chunk,
 * so that the connection can be used for the next request as soon as the client has everything.
 * @param nextTurn waits for a turn before the next chunk is generated
 * @throws the stream's error if the client disconnects; errors from `write`
 */
export async function sendChunks(
  stream: Writable,
  body: ChunkSource,
  nextTurn: () => Promise<void>,
): Promise<void> {
  let remaining = body.byteLength ?? Infinity;
  const sendNext = async (buffer: Buffer): Promise<boolean> => {
    const length = await body.write(buffer);
    remaining -= length;
    const isLast = length === 0 || remaining <= 0;
    await write(stream, buffer.subarray(0, length), isLast);
    return isLast;
  };
  while (!(await buffers.use(body.maxChunkBytes, sendNext))) {
    // Otherwise, a fast client would get its whole body in this event-loop turn while all others wait.
    await nextTurn();
  }
}

/** Resolves once the bytes have been passed to the operating system. */
async function write(stream: Writable, bytes: Buffer, isLast: boolean): Promise<void> {
  // Check first, because ending a closed response does not report an error.
  if (stream.destroyed) throw new Error(readerDisconnected);
  await new Promise<void>((resolve, reject) => {
    const onClose = (): void => reject(new Error(readerDisconnected));
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

const readerDisconnected = 'the reader has disconnected';
