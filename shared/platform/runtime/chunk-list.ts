/** Shorter chunks are copied into shared blocks: a one-byte chunk in its own buffer takes 400 bytes of memory. */
const copiedBelowBytes = 1_024;
const blockBytes = 4_096;

const empty = Buffer.alloc(0);

/**
 * Collects bytes that arrive in chunks. Memory use stays close to the number of bytes, even if the chunks are short.
 */
export class ChunkList {
  #chunks: Buffer[] = [];
  /** Short chunks are copied here. The first `#used` bytes are occupied. */
  #block = empty;
  #used = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(chunk: Buffer): void {
    const isFirst = this.#length === 0;
    this.#length += chunk.length;
    // Most lists have one chunk.
    if (isFirst || chunk.length >= copiedBelowBytes) {
      this.#endBlock();
      this.#chunks.push(chunk);
      return;
    }
    if (this.#used + chunk.length > this.#block.length) {
      this.#endBlock();
      this.#block = Buffer.allocUnsafe(blockBytes);
    }
    this.#used += chunk.copy(this.#block, this.#used);
  }

  /**
   * Empties the list.
   * @returns all bytes, as one buffer
   */
  take(): Buffer {
    const chunks = this.takeChunks();
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  }

  /**
   * Empties the list.
   * @returns all bytes, without joining the buffers
   */
  takeChunks(): Buffer[] {
    this.#endBlock();
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#length = 0;
    return chunks;
  }

  /** Adds the used part of the block as a chunk. Later chunks use the remaining part. */
  #endBlock(): void {
    if (this.#used > 0) this.#chunks.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}
