/** Lines of a slice, by their number. Written as base64url of a bit per line. */
export class LineSet {
  #bits: Uint8Array;

  constructor(text = '') {
    this.#bits = new Uint8Array(Buffer.from(text, 'base64url'));
  }

  has(index: number): boolean {
    return ((this.#bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
  }

  add(index: number): void {
    if (index >> 3 >= this.#bits.length) {
      const grown = new Uint8Array(Math.max((index >> 3) + 1, 2 * this.#bits.length));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    this.#bits[index >> 3]! |= 1 << (index & 7);
  }

  toString(): string {
    let length = this.#bits.length;
    while (length > 0 && this.#bits[length - 1] === 0) length -= 1;
    return Buffer.from(this.#bits.subarray(0, length)).toString('base64url');
  }
}
