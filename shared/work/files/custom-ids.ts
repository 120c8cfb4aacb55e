import { createHash } from 'node:crypto';

const initialSlots = 1_024;
/** A table that is fuller than this grows. */
const maxLoad = 1 / 2;

/**
 * The `custom_id`s of a file and their lines. It keeps 64 bits of a hash of each, so that fifty thousand of them take two
 * megabytes, however long they are. That two different ones count as equal is less likely than one in ten billion files.
 */
export class CustomIds {
  #size = 0;
  /** In each slot the two halves of a hash and a line, which is 0 in a free one. */
  #slots = new Uint32Array(3 * initialSlots);

  /** @returns the line that has this id already; null if it is new */
  add(id: string, line: number): number | null {
    const known = this.#insert(...hashId(id), line);
    if (known !== null) return known;
    this.#size += 1;
    if (this.#size > (this.#slots.length / 3) * maxLoad) this.#grow();
    return null;
  }

  /** Whether a line has this id. */
  has(id: string): boolean {
    return this.#slots[this.#find(...hashId(id)) + 2] !== 0;
  }

  /** Returns the line that has this hash already. Null if it had none. */
  #insert(low: number, high: number, line: number): number | null {
    const slots = this.#slots;
    const at = this.#find(low, high);
    if (slots[at + 2] !== 0) return slots[at + 2]!;
    slots[at] = low;
    slots[at + 1] = high;
    slots[at + 2] = line;
    return null;
  }

  /** Returns where this hash is, or would be. */
  #find(low: number, high: number): number {
    const slots = this.#slots;
    const mask = slots.length / 3 - 1;
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const at = slot * 3;
      if (slots[at + 2] === 0 || (slots[at] === low && slots[at + 1] === high)) return at;
    }
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Uint32Array(before.length * 2);
    for (let at = 0; at < before.length; at += 3) {
      if (before[at + 2] !== 0) this.#insert(before[at]!, before[at + 1]!, before[at + 2]!);
    }
  }
}

function hashId(id: string): [low: number, high: number] {
  const hash = createHash('sha256').update(id).digest();
  return [hash.readUInt32LE(0), hash.readUInt32LE(4)];
}
