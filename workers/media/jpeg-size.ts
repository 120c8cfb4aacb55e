import { maxParts, maxScans, tooManyParts, tooManyScans, undecodable } from './image-limits.ts';
import type { SizeReader } from './image-size.ts';

const endOfImage = 0xd9;
const startOfScan = 0xda;

/** Reads JPEG (ITU-T T.81, annex B). Images after the first, such as a phone's gain map, are not part of it. */
export const readJpegSize: SizeReader = (bytes) => {
  let [width, height, scans] = [0, 0, 0];
  let position = 2;
  for (let part = 0; ; part++) {
    position = findMarker(bytes, position);
    const marker = bytes[position - 1];
    if (position >= bytes.length || marker === endOfImage) break;
    if (part === maxParts) return tooManyParts;
    if (marker === startOfScan) scans += 1;
    if (scans > maxScans) return tooManyScans;
    // A marker, a length that includes itself, and the content.
    if (position + 2 > bytes.length) break;
    if (isFrameMarker(marker!) && position + 7 <= bytes.length) {
      height = Math.max(height, bytes.readUInt16BE(position + 3));
      width = Math.max(width, bytes.readUInt16BE(position + 5));
    }
    position += bytes.readUInt16BE(position);
  }
  return width === 0 || height === 0 ? undecodable : { width, height, frames: 1 };
};

/** SOF0 to SOF15; the codes between them that are not frames are DHT, JPG and DAC. */
function isFrameMarker(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/**
 * Returns the position after the next marker that begins a segment, or the end of the file. Skips the pixels of a scan
 * and everything that decoders skip: fill bytes, restart markers, and what is not a marker.
 */
function findMarker(bytes: Buffer, from: number): number {
  for (let position = from; position + 1 < bytes.length; position++) {
    if (bytes[position] !== 0xff) continue;
    const code = bytes[position + 1]!;
    const hasNoContent = code <= 1 || code === 0xff || (code >= 0xd0 && code <= 0xd8);
    if (!hasNoContent) return position + 2;
  }
  return bytes.length;
}
