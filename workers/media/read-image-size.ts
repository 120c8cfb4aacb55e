// decision 0068
import type { ImageType } from '../../shared/contract/image-type.ts';
import { maxPixels, tooManyPixels, type ImageProblem } from './image-limits.ts';
import { readGifSize } from './gif-size.ts';
import type { ImageSize, SizeReader } from './image-size.ts';
import { readJpegSize } from './jpeg-size.ts';
import { readPngSize } from './png-size.ts';
import { readWebpSize } from './webp-size.ts';

const readers: Readonly<Record<ImageType, SizeReader>> = {
  'image/png': readPngSize,
  'image/jpeg': readJpegSize,
  'image/webp': readWebpSize,
  'image/gif': readGifSize,
};

/** The size of an image that is within the limits. */
export interface AllowedSize extends ImageSize {
  /** Of the counted frames together. */
  readonly pixels: number;
}

/**
 * Reads the size of an image from its bytes and checks it against the limits, before any decoder sees the file.
 * @param countsFrames whether the pixels of all frames count, or only those of the first
 */
export function readImageSize(
  bytes: Buffer,
  type: ImageType,
  { countsFrames }: { readonly countsFrames: boolean },
): AllowedSize | ImageProblem {
  const size = readers[type](bytes);
  if ('problem' in size) return size;
  const pixels = size.width * size.height * (countsFrames ? size.frames : 1);
  return pixels > maxPixels ? tooManyPixels : { ...size, pixels };
}
