import { BufferPool, type PooledBuffer } from '../../shared/platform/runtime/buffer-pool.ts';

/** Enough for the results of a part, so that they need not be copied to be stored. */
const bufferBytes = 4 * 1024 * 1024;

const buffers = new BufferPool(64 * 1024 * 1024);

/** Writes lines one after the other into buffers that they share. */
export class LineWriter {
  #buffers: PooledBuffer[] = [];
  #at = 0;

  /**
   * Returns the bytes that were written.
   * @param maxBytes of this line
   * @param write writes the line at an offset, and returns the offset of the next byte
   */
  write(maxBytes: number, write: (target: Buffer, at: number) => number): Buffer {
    let bytes = this.#buffers.at(-1)?.bytes;
    if (bytes === undefined || bytes.length - this.#at < maxBytes) {
      const lent = buffers.lend(Math.max(bufferBytes, maxBytes));
      this.#buffers.push(lent);
      bytes = lent.bytes;
      this.#at = 0;
    }
    const start = this.#at;
    this.#at = write(bytes, start);
    return bytes.subarray(start, this.#at);
  }

  /** Lets the memory of all lines be used again. Nothing may refer to it any more. */
  release(): void {
    for (const { release } of this.#buffers) release();
    this.#buffers = [];
  }
}

/** Joins pieces. Does not copy them if each begins where the one before it ends, as lines of a writer do. */
export function joinPieces(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces;
  let end = first?.byteOffset ?? 0;
  for (const piece of pieces) {
    if (piece.buffer !== first!.buffer || piece.byteOffset !== end) return Buffer.concat(pieces);
    end += piece.length;
  }
  return first === undefined
    ? Buffer.alloc(0)
    : Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset);
}
