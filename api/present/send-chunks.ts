import type { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BufferPool } from '../../shared/runtime/buffer-pool.ts';

/** A body that is made as its reader takes it. */
export interface ChunkedBody {
  /** What `write` needs room for at the most. */
  readonly maxChunkBytes: number;
  /** Writes the next bytes into the target. @returns how many; 0 at the end */
  write(target: Buffer): number;
}

/** Who takes nothing for so long holds an answer of up to tens of megabytes that nobody will read. */
const maxStallMs = 60_000;

/** On average of a whole answer, which else could be held for hours: a tenth of what a slow line takes. */
const leastBytesPerSecond = 32 * 1024;

const buffers = new BufferPool(16 * 1024 * 1024);

/** Writes a body to its end, one chunk at a time. @throws the stream's error when its reader has gone */
export async function sendChunks(stream: Writable, body: ChunkedBody): Promise<void> {
  const startedAtMs = performance.now();
  let written = 0;
  let isOver = false;
  while (!isOver) {
    isOver = await buffers.use(body.maxChunkBytes, async (buffer) => {
      const length = body.write(buffer);
      if (length > 0) await write(stream, buffer.subarray(0, length));
      written += length;
      return length === 0;
    });
    const mostMs = maxStallMs + (written / leastBytesPerSecond) * 1_000;
    if (performance.now() - startedAtMs > mostMs) throw new Error('the reader takes too little');
    // A reader that keeps up would else be given everything in this turn, and all others would wait for the end of it.
    await nextTurn();
  }
  stream.end();
}

/** Resolves when the bytes are the system's. */
async function write(stream: Writable, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onClose = (): void => reject(new Error('the reader has gone'));
    const timer = setTimeout(() => reject(new Error('the reader takes nothing')), maxStallMs);
    stream.once('close', onClose);
    stream.write(bytes, (error) => {
      clearTimeout(timer);
      stream.off('close', onClose);
      if (error) reject(error);
      else resolve();
    });
  });
}
