import { crc32 } from 'node:zlib';

/** Files that no encoder writes, built byte by byte. */

export function makePngChunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Inserts chunks after the IHDR of a PNG. */
export const withPngChunks = (png: Buffer, chunks: readonly Buffer[]): Buffer =>
  Buffer.concat([png.subarray(0, 33), ...chunks, png.subarray(33)]);

export function makeFrameControl(width: number, height: number, x = 0, y = 0): Buffer {
  const content = Buffer.alloc(26);
  [0, width, height, x, y].forEach((value, i) => content.writeUInt32BE(value, 4 * i));
  return makePngChunk('fcTL', content);
}

const gifHead = Buffer.from('47494638396101000100800000000000ffffff', 'hex');

/** A frame of one pixel at the upper left corner. */
export const gifFrame = Buffer.from('2c00000000010001000002024c0100', 'hex');
export const gifTrailer = Buffer.from(';');

export const makeGif = (blocks: readonly Buffer[]): Buffer => Buffer.concat([gifHead, ...blocks]);

/** Makes a GIF with this many frames of one pixel. */
export const makeManyFramedGif = (frames: number): Buffer =>
  makeGif([...repeat(gifFrame, frames), gifTrailer]);

export const repeat = (part: Buffer, times: number): Buffer[] => Array.from({ length: times }, () => part);

/** Repeats the last scan of a JPEG, from its SOS segment on. */
export function withRepeatedScans(jpeg: Buffer, times: number): Buffer {
  const start = jpeg.lastIndexOf(Buffer.from('ffda', 'hex'));
  const scan = jpeg.subarray(start, jpeg.length - 2);
  return Buffer.concat([jpeg.subarray(0, start), ...repeat(scan, times), jpeg.subarray(-2)]);
}

/** Inserts comment segments after the first marker of a JPEG. */
export const withJpegComments = (jpeg: Buffer, count: number): Buffer =>
  Buffer.concat([jpeg.subarray(0, 2), ...repeat(Buffer.from('fffe0002', 'hex'), count), jpeg.subarray(2)]);
