import { isUtf8 } from 'node:buffer';

const nothing = Buffer.alloc(0);
const replacement = Buffer.from('\ufffd');

/** Finds where bytes that arrive in chunks are no UTF-8, which decoders would replace without a word. */
export class Utf8Check {
  /** Of all chunks so far. */
  #length = 0;
  /** The beginning of the character that the last chunk ended in. */
  #open = nothing;

  /** @returns the offset of the first byte that is part of no character; -1 where there is none so far */
  push(chunk: Buffer): number {
    const startsAt = this.#length - this.#open.length;
    const bytes = this.#open.length === 0 ? chunk : Buffer.concat([this.#open, chunk]);
    const end = findCharacterEnd(bytes, bytes.length);
    const whole = bytes.subarray(0, end);
    if (!isUtf8(whole)) return startsAt + findFault(whole);
    this.#length += chunk.length;
    // A copy, as the chunk is not held any longer than others hold it.
    this.#open = end === bytes.length ? nothing : Buffer.from(bytes.subarray(end));
    return -1;
  }

  /** @returns the offset of a character that is not whole at the end; -1 where there is none */
  end(): number {
    return this.#open.length === 0 ? -1 : this.#length - this.#open.length;
  }
}

/** Decoders put a U+FFFD where a fault is: the first that is no character of the text itself. */
function findFault(bytes: Buffer): number {
  const text = bytes.toString('utf8');
  let offset = 0;
  let from = 0;
  for (;;) {
    const at = text.indexOf('\ufffd', from);
    offset += Buffer.byteLength(text.slice(from, at));
    if (!bytes.subarray(offset, offset + replacement.length).equals(replacement)) return offset;
    offset += replacement.length;
    from = at + 1;
  }
}

/** The last place up to `end` that is not within a character of UTF-8. */
export function findCharacterEnd(bytes: Buffer, end: number): number {
  for (let length = 1; length <= 3 && length <= end; length++) {
    const byte = bytes[end - length]!;
    if ((byte & 0xc0) === 0x80) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > length ? end - length : end;
  }
  return end;
}
