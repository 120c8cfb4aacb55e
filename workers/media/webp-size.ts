import { maxFrames, maxParts, tooManyFrames, tooManyParts, undecodable } from './image-limits.ts';
import type { ImageProblem } from './image-limits.ts';
import type { SizeReader } from './image-size.ts';

const riffHeadBytes = 12;
const chunkHeadBytes = 8;
const frameHeadBytes = 16;

/** Reads WebP (RFC 9649). */
export const readWebpSize: SizeReader = (bytes) => {
  const walk = new WebpWalk(bytes);
  // The length in the head does not include the first two fields. Nothing after it belongs to the image.
  const end =
    bytes.length < riffHeadBytes ? 0 : Math.min(bytes.length, chunkHeadBytes + bytes.readUInt32LE(4));
  const problem = walk.readChunks(riffHeadBytes, end, false);
  if (problem !== null) return problem;
  const { width, height, frames, images } = walk;
  if (images === 0 || width === 0 || height === 0) return undecodable;
  return { width, height, frames: Math.max(1, frames) };
};

class WebpWalk {
  readonly #bytes: Buffer;
  #parts = 0;
  width = 0;
  height = 0;
  frames = 0;
  images = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Goes through the chunks of the file, or through those of one frame: no deeper, whatever they hold. */
  readChunks(from: number, end: number, isFrame: boolean): ImageProblem | null {
    const bytes = this.#bytes;
    let position = from;
    while (position + chunkHeadBytes <= end) {
      this.#parts += 1;
      if (this.#parts > maxParts) return tooManyParts;
      const type = bytes.toString('latin1', position, position + 4);
      const length = bytes.readUInt32LE(position + 4);
      const start = position + chunkHeadBytes;
      const chunkEnd = Math.min(end, start + length);
      this.#readChunk(type, bytes.subarray(start, chunkEnd));
      if (this.frames > maxFrames) return tooManyFrames;
      if (type === 'ANMF' && !isFrame) {
        const problem = this.readChunks(start + frameHeadBytes, chunkEnd, true);
        if (problem !== null) return problem;
      }
      // Chunks begin at even positions.
      position = start + length + (length % 2);
    }
    return null;
  }

  #readChunk(type: string, content: Buffer): void {
    if (type === 'VP8X' && content.length >= 10) {
      this.#include(1 + content.readUIntLE(4, 3), 1 + content.readUIntLE(7, 3));
    } else if (type === 'ANMF') {
      this.frames += 1;
      if (content.length < frameHeadBytes) return;
      // Positions are in units of two pixels.
      const [x, y] = [2 * content.readUIntLE(0, 3), 2 * content.readUIntLE(3, 3)];
      this.#include(x + 1 + content.readUIntLE(6, 3), y + 1 + content.readUIntLE(9, 3));
    } else if (type === 'VP8 ' && content.length >= 10) {
      this.images += 1;
      this.#include(content.readUInt16LE(6) & 0x3fff, content.readUInt16LE(8) & 0x3fff);
    } else if (type === 'VP8L' && content.length >= 5) {
      this.images += 1;
      const sides = content.readUInt32LE(1);
      this.#include(1 + (sides & 0x3fff), 1 + ((sides >>> 14) & 0x3fff));
    }
  }

  #include(width: number, height: number): void {
    this.width = Math.max(this.width, width);
    this.height = Math.max(this.height, height);
  }
}
