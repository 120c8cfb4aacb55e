import { maxFrames, maxParts, tooManyFrames, tooManyParts, undecodable } from './image-limits.ts';
import type { SizeReader } from './image-size.ts';

const signatureBytes = 8;
/** The length before a chunk's type, and the checksum after its content. */
const chunkBytes = 12;

/** Reads PNG, and the frames of an APNG (W3C, PNG Specification, third edition, sections 5.3 and 11). */
export const readPngSize: SizeReader = (bytes) => {
  let [width, height, framesStated, frames] = [0, 0, 1, 0];
  let position = signatureBytes;
  for (let part = 0; position + chunkBytes <= bytes.length; part++) {
    const length = bytes.readUInt32BE(position);
    const type = bytes.toString('latin1', position + 4, position + 8);
    const content = bytes.subarray(position + 8, Math.min(bytes.length, position + 8 + length));
    if (part === maxParts) return tooManyParts;
    // A PNG begins with its IHDR.
    if (part === 0 && (type !== 'IHDR' || content.length < 13)) return undecodable;
    if (part === 0) [width, height] = [content.readUInt32BE(0), content.readUInt32BE(4)];
    else if (type === 'acTL' && content.length >= 4) framesStated = content.readUInt32BE(0);
    else if (type === 'fcTL' && content.length >= 20) {
      frames += 1;
      width = Math.max(width, content.readUInt32BE(4) + content.readUInt32BE(12));
      height = Math.max(height, content.readUInt32BE(8) + content.readUInt32BE(16));
    }
    if (frames > maxFrames || framesStated > maxFrames) return tooManyFrames;
    if (type === 'IEND') break;
    position += chunkBytes + length;
  }
  if (width === 0 || height === 0) return undecodable;
  return { width, height, frames: Math.max(1, frames, framesStated) };
};
