/** A body that is generated or read as its client reads it. */
export interface ChunkSource {
  /** Maximum bytes that one call of `write` returns. */
  readonly maxChunkBytes: number;
  /** Length of the whole body, if known. */
  readonly byteLength?: number;
  /** Writes the next bytes into the target. @returns the number of bytes; 0 at the end */
  write(target: Buffer): number | Promise<number>;
}

/** A body whose chunks are available synchronously. */
export interface ChunkedBody extends ChunkSource {
  write(target: Buffer): number;
}

const bytesPerChunk = 256 * 1024;

/** Splits a buffer into chunks to send. */
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
