/** Of a buffer; so there are never many to look through. */
const smallestBytes = 64 * 1024;

/** Bytes that are somebody's until they are given back. Where they never are, they are collected like any others. */
export interface LentBuffer {
  readonly bytes: Buffer;
  /** Nothing refers to the bytes any more. May be called again. */
  readonly giveBack: () => void;
}

/** As if it had been lent. */
export const ownBuffer = (bytes: Buffer): LentBuffer => ({ bytes, giveBack: () => undefined });

/** One that is larger than so many times what is needed is left for who needs more. */
const maxSlack = 8;

/**
 * Large buffers that are used again and again. V8 looks through its whole heap for every 64 MB of new ones that live for
 * more than a moment, which costs more than what is done with them.
 */
export class BufferPool {
  readonly #maxKeptBytes: number;
  /** In the order in which they were given back. */
  #free: Buffer[] = [];
  #keptBytes = 0;

  constructor(maxKeptBytes: number) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  /** Lends so many bytes, whose content is anything. */
  lend(length: number): LentBuffer {
    const size = 2 ** Math.ceil(Math.log2(Math.max(length, smallestBytes)));
    let buffer: Buffer | null = this.#take(size) ?? Buffer.allocUnsafeSlow(size);
    return {
      bytes: buffer.subarray(0, length),
      giveBack: () => {
        if (buffer !== null) this.#keep(buffer);
        buffer = null;
      },
    };
  }

  /**
   * Lends a buffer until the work resolves: nothing that refers to it may outlive that. Where the work rejects, something
   * may still be writing to it or reading it: it is not used again.
   */
  async use<T>(length: number, work: (buffer: Buffer) => Promise<T> | T): Promise<T> {
    const { bytes, giveBack } = this.lend(length);
    const result = await work(bytes);
    giveBack();
    return result;
  }

  /** The smallest that is large enough. */
  #take(size: number): Buffer | null {
    let best = -1;
    for (const [i, { length }] of this.#free.entries()) {
      if (length < size || length > maxSlack * size) continue;
      if (best === -1 || length < this.#free[best]!.length) best = i;
    }
    if (best === -1) return null;
    const [buffer] = this.#free.splice(best, 1);
    this.#keptBytes -= buffer!.length;
    return buffer!;
  }

  /** What nobody has needed for longest makes room. */
  #keep(buffer: Buffer): void {
    if (buffer.length > this.#maxKeptBytes) return;
    this.#free.push(buffer);
    this.#keptBytes += buffer.length;
    while (this.#keptBytes > this.#maxKeptBytes) this.#keptBytes -= this.#free.shift()!.length;
  }
}
