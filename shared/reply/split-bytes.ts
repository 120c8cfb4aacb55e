/** Bytes that came in several buffers, read as if they were in one. */
export class SplitBytes {
  readonly length: number;
  readonly #parts: readonly Buffer[];
  /** Where in `parts` this begins. */
  readonly #from: number;
  /** The part that was read last, and where it begins: reading goes on from there mostly. */
  #part = 0;
  #partStart = 0;

  constructor(parts: readonly Buffer[], from = 0) {
    this.#parts = parts;
    this.#from = from;
    this.length = parts.reduce((sum, part) => sum + part.length, 0) - from;
  }

  from(start: number): SplitBytes {
    return new SplitBytes(this.#parts, this.#from + start);
  }

  /** A view where all of it lies in one buffer, else a copy. @throws RangeError past the end */
  slice(start: number, end: number): Buffer {
    if (start < 0 || end < start || end > this.length) {
      throw new RangeError(`there are no bytes ${start} to ${end} of ${this.length}`);
    }
    if (start === end) return Buffer.alloc(0);
    this.#seek(this.#from + start);
    let at = this.#from + start - this.#partStart;
    const first = this.#parts[this.#part]!;
    if (at + end - start <= first.length) return first.subarray(at, at + end - start);
    const copy = Buffer.allocUnsafe(end - start);
    let copied = 0;
    for (let i = this.#part; copied < copy.length; i++) {
      copied += this.#parts[i]!.copy(copy, copied, at);
      at = 0;
    }
    return copy;
  }

  /** All of it. */
  join(): Buffer {
    return this.slice(0, this.length);
  }

  /** Makes the part that holds this place the current one. */
  #seek(place: number): void {
    if (place < this.#partStart) {
      this.#part = 0;
      this.#partStart = 0;
    }
    while (place >= this.#partStart + this.#parts[this.#part]!.length) {
      this.#partStart += this.#parts[this.#part]!.length;
      this.#part += 1;
    }
  }
}
