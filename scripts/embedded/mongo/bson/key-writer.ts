import type { Binary, ObjectId } from 'bson';
import { Long } from 'bson';
import { getTypeOrder, typeOrder } from './bson-types.ts';
import type { Doc } from './document.ts';
import type { BsonNumber } from './numbers.ts';
import { toNumber } from './numbers.ts';

const residual = { negative: 0x7f, none: 0x80, positive: 0x81 };

/**
 * Encodes values as bytes that sort in MongoDB's order of the values. No value's bytes are a prefix of another's, so
 * several can follow each other in the key of a compound index. No value starts with 0 or 0xff.
 */
export class KeyWriter {
  #bytes = Buffer.allocUnsafe(128);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  toBuffer(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  writeBytes(bytes: Uint8Array): this {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  writeByte(byte: number): this {
    this.#reserve(1);
    this.#bytes[this.#length] = byte;
    this.#length += 1;
    return this;
  }

  /** Inverts the bytes written since `start`, which reverses their sort order, for a descending field of an index. */
  invertFrom(start: number): this {
    for (let i = start; i < this.#length; i += 1) this.#bytes[i] = ~this.#bytes[i]!;
    return this;
  }

  writeValue(value: unknown): this {
    const type = getTypeOrder(value);
    this.writeByte(type);
    if (type === typeOrder.number) return this.#writeNumber(value as BsonNumber);
    if (type === typeOrder.string) return this.#writeText(value as string);
    if (type === typeOrder.object) return this.#writeObject(value as Doc);
    if (type === typeOrder.array) return this.#writeArray(value as unknown[]);
    if (type === typeOrder.binary) return this.#writeBinary(value as Binary);
    if (type === typeOrder.objectId) return this.writeBytes((value as ObjectId).id);
    if (type === typeOrder.boolean) return this.writeByte(value === true ? 2 : 1);
    if (type === typeOrder.date) return this.#writeDouble((value as Date).getTime());
    return this;
  }

  #writeObject(object: Doc): this {
    for (const [name, value] of Object.entries(object)) {
      this.writeByte(getTypeOrder(value)).#writeText(name).writeValue(value);
    }
    return this.writeByte(0);
  }

  #writeArray(array: unknown[]): this {
    for (const element of array) this.writeValue(element);
    return this.writeByte(0);
  }

  #writeBinary(binary: Binary): this {
    const bytes = binary.buffer.subarray(0, binary.position);
    return this.#writeDouble(bytes.length).writeByte(binary.sub_type).writeBytes(bytes);
  }

  /** Writes UTF-8, terminated by two zero bytes. A zero byte inside is followed by 0xff. */
  #writeText(text: string): this {
    const bytes = Buffer.from(text);
    let start = 0;
    for (let zero = bytes.indexOf(0); zero >= 0; zero = bytes.indexOf(0, start)) {
      this.writeBytes(bytes.subarray(start, zero + 1)).writeByte(0xff);
      start = zero + 1;
    }
    return this.writeBytes(bytes.subarray(start)).writeByte(0).writeByte(0);
  }

  /**
   * Writes the nearest double, then the exact difference. Without the second part, two int64 values beyond 2^53 would
   * share a key, and a unique index would reject one of them.
   */
  #writeNumber(value: BsonNumber): this {
    const nearest = toNumber(value);
    this.#writeDouble(nearest);
    const difference = value instanceof Long ? Number(value.toBigInt() - BigInt(nearest)) : 0;
    if (difference === 0) return this.writeByte(residual.none);
    this.writeByte(difference < 0 ? residual.negative : residual.positive);
    // Doubles of the magnitude of an int64 are at most 2048 apart.
    return this.writeByte((0x8000 + difference) >> 8).writeByte((0x8000 + difference) & 0xff);
  }

  #writeDouble(value: number): this {
    this.#reserve(8);
    const bytes = this.#bytes.subarray(this.#length, this.#length + 8);
    if (Number.isNaN(value)) bytes.fill(0);
    else {
      bytes.writeDoubleBE(value === 0 ? 0 : value);
      // Flip the sign bit. For a negative number also flip all other bits, because larger magnitudes sort first.
      const mask = bytes[0]! & 0x80 ? 0xff : 0;
      for (let i = 0; i < 8; i += 1) bytes[i] = bytes[i]! ^ mask;
      if (mask === 0) bytes[0] = bytes[0]! | 0x80;
    }
    this.#length += 8;
    return this;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + count));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
