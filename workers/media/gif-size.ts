import {
  maxFrames,
  maxParts,
  maxSubBlocks,
  tooManyFrames,
  tooManyParts,
  tooManySubBlocks,
  undecodable,
} from './image-limits.ts';
import type { SizeReader } from './image-size.ts';

const headBytes = 13;
const imageMark = 0x2c;
const extensionMark = 0x21;
const descriptorBytes = 10;

/** Reads GIF (GIF89a specification, CompuServe, 1990). Counts only frames that are complete, as viewers show them. */
export const readGifSize: SizeReader = (bytes) => {
  if (bytes.length < headBytes) return undecodable;
  const blocks = new SubBlocks(bytes);
  let [width, height, frames] = [bytes.readUInt16LE(6), bytes.readUInt16LE(8), 0];
  let position = headBytes + countTableBytes(bytes[10]!);
  for (let part = 0; position < bytes.length; part++) {
    if (part === maxParts) return tooManyParts;
    const mark = bytes[position];
    if (mark === extensionMark) position = blocks.skip(position + 2);
    else if (mark === imageMark && position + descriptorBytes < bytes.length) {
      const at = position;
      // One byte follows the table of colours: the size of the first codes.
      position = blocks.skip(at + descriptorBytes + countTableBytes(bytes[at + 9]!) + 1);
      if (position > bytes.length) break;
      frames += 1;
      if (frames > maxFrames) return tooManyFrames;
      width = Math.max(width, bytes.readUInt16LE(at + 1) + bytes.readUInt16LE(at + 5));
      height = Math.max(height, bytes.readUInt16LE(at + 3) + bytes.readUInt16LE(at + 7));
    } else break;
  }
  if (blocks.count > maxSubBlocks) return tooManySubBlocks;
  if (frames === 0 || width === 0 || height === 0) return undecodable;
  return { width, height, frames };
};

/** @param flags the byte that says whether a table of colours follows, and of what size */
function countTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

class SubBlocks {
  readonly #bytes: Buffer;
  count = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Returns the position after the empty sub-block, or one beyond the end of the file if there are too many before. */
  skip(from: number): number {
    const bytes = this.#bytes;
    for (let position = from; position < bytes.length && this.count <= maxSubBlocks; this.count++) {
      const length = bytes[position]!;
      position += 1 + length;
      if (length === 0) return position;
    }
    return bytes.length + 1;
  }
}
