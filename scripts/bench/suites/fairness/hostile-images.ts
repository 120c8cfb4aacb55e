import { randomBytes } from 'node:crypto';
import sharp from 'sharp';

const uint24 = (value: number): Buffer => Buffer.from([value, value >> 8, value >> 16]);

export function makeRiffChunk(name: string, payload: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 'latin1');
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload, Buffer.alloc(payload.length % 2)]);
}

export const makeWebp = (chunks: readonly Buffer[]): Buffer =>
  makeRiffChunk('RIFF', Buffer.concat([Buffer.from('WEBP'), ...chunks]));

export const makeWebpCanvas = (width: number, height: number): Buffer =>
  makeRiffChunk('VP8X', Buffer.concat([Buffer.from([2, 0, 0, 0]), uint24(width - 1), uint24(height - 1)]));

/** A frame at the upper left corner. */
export const makeWebpFrame = (image: Buffer, width = 1, height = 1): Buffer =>
  makeRiffChunk(
    'ANMF',
    Buffer.concat([Buffer.alloc(6), uint24(width - 1), uint24(height - 1), Buffer.from([1, 0, 0, 0]), image]),
  );

/** Makes an animation with this many frames of one pixel, 44 bytes each. Some decoders walk them quadratically. */
export async function makeManyFrames(frames: number): Promise<Buffer> {
  const create = { width: 1, height: 1, channels: 3, background: 'red' } as const;
  const still = await sharp({ create }).webp({ lossless: true }).toBuffer();
  // What follows the head of the file is the chunk with the pixels.
  const frame = makeWebpFrame(still.subarray(12));
  const animation = makeRiffChunk('ANIM', Buffer.alloc(6));
  return makeWebp([makeWebpCanvas(1, 1), animation, ...Array.from({ length: frames }, () => frame)]);
}

/** Makes a WebP of 49 megapixels and some 17 MB: noise, which takes encoders the longest. */
export async function makeNoisyWebp(side = 7_000): Promise<Buffer> {
  const stripe = randomBytes(side * Math.ceil(side / 10) * 3);
  const pixels = Buffer.concat(Array.from({ length: 10 }, () => stripe)).subarray(0, side * side * 3);
  return await sharp(pixels, { raw: { width: side, height: side, channels: 3 } })
    .webp({ quality: 17, effort: 0 })
    .toBuffer();
}
