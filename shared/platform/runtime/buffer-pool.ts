/** Minimum size of a pooled buffer. It keeps the list of free buffers short. */
const minBytes = 64 * 1024;

/**
 * Bytes that belong to the borrower until they are released. If they never are, they are garbage collected as usual.
 */
export interface PooledBuffer {
  readonly bytes: Buffer;
  /** Call this once nothing refers to the bytes any more. Calling it again has no effect. */
  readonly release: () => void;
}

/** Wraps a buffer that does not come from a pool. Releasing it has no effect. */
export const unpooledBuffer = (bytes: Buffer): PooledBuffer => ({ bytes, release: () => undefined });

/** A free buffer more than this many times larger than needed is kept for larger requests. */
const maxSlack = 8;

/**
 * A pool of large buffers. For every 64 MB of new buffers that live for more than a moment, V8 traverses its whole
 * heap, which takes longer than the work done with them.
 */
export class BufferPool {
  readonly #maxPooledBytes: number;
  /** In the order in which they were released, oldest first. */
  #free: Buffer[] = [];
  #pooledBytes = 0;

  constructor(maxPooledBytes: number) {
    this.#maxPooledBytes = maxPooledBytes;
  }

  /** Lends a buffer of `length` bytes. Its content is undefined. */
  lend(length: number): PooledBuffer {
    const size = 2 ** Math.ceil(Math.log2(Math.max(length, minBytes)));
    let buffer: Buffer | null = this.#take(size) ?? Buffer.allocUnsafeSlow(size);
    return {
      bytes: buffer.subarray(0, length),
      release: () => {
        if (buffer !== null) this.#keep(buffer);
        buffer = null;
      },
    };
  }

  /**
   * Lends a buffer until the work resolves. Nothing may refer to the buffer after that. If the work rejects,
   * something may still be reading or writing the buffer, so it is not reused.
   */
  async use<T>(length: number, work: (buffer: Buffer) => Promise<T> | T): Promise<T> {
    const { bytes, release } = this.lend(length);
    const result = await work(bytes);
    release();
    return result;
  }

  /** Takes the smallest free buffer that is large enough. */
  #take(size: number): Buffer | null {
    let best = -1;
    for (const [i, { length }] of this.#free.entries()) {
      if (length < size || length > maxSlack * size) continue;
      if (best === -1 || length < this.#free[best]!.length) best = i;
    }
    if (best === -1) return null;
    const [buffer] = this.#free.splice(best, 1);
    this.#pooledBytes -= buffer!.length;
    return buffer!;
  }

  /** Keeps a buffer for reuse. If the pool is full, drops the buffers that were released longest ago. */
  #keep(buffer: Buffer): void {
    if (buffer.length > this.#maxPooledBytes) return;
    this.#free.push(buffer);
    this.#pooledBytes += buffer.length;
    while (this.#pooledBytes > this.#maxPooledBytes) this.#pooledBytes -= this.#free.shift()!.length;
  }
}
