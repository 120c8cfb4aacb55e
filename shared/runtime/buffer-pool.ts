/** Below this a buffer is cheap to make. */
const smallestKeptBytes = 64 * 1024;

/**
 * Large buffers that are used again and again. V8 looks through its whole heap for every 64 MB of new ones, which costs
 * more than what is done with them.
 */
export class BufferPool {
  readonly #maxKeptBytes: number;
  /** By their sizes, which are powers of two. */
  readonly #free = new Map<number, Buffer[]>();
  #keptBytes = 0;

  constructor(maxKeptBytes: number) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  /**
   * Lends a buffer of at least this length, whose content is anything, until the work resolves. Nothing that refers to it
   * may outlive that. Where the work rejects, something may still be writing to it or reading it: it is not used again.
   */
  async use<T>(length: number, work: (buffer: Buffer) => Promise<T> | T): Promise<T> {
    const size = 2 ** Math.ceil(Math.log2(Math.max(length, smallestKeptBytes)));
    let buffer = this.#free.get(size)?.pop();
    if (buffer === undefined) buffer = Buffer.allocUnsafeSlow(size);
    else this.#keptBytes -= size;
    const result = await work(buffer);
    if (this.#keptBytes + size <= this.#maxKeptBytes) {
      const free = this.#free.get(size);
      if (free === undefined) this.#free.set(size, [buffer]);
      else free.push(buffer);
      this.#keptBytes += size;
    }
    return result;
  }
}
