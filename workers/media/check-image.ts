import { sniffImageType, type ImageType } from '../../shared/contract/image-type.ts';
import {
  decodeOptions,
  Decoders,
  inspectHead,
  maxDecodeSeconds,
  maxPixels,
  undecodable,
  unknownImageType,
  type ImageProblem,
  type Sharp,
} from './decoders.ts';

/** How long to wait for a decoder. Each decode ahead in the queue finishes within seconds. */
const maxWaitMs = 60_000;

export interface CheckedImage {
  readonly mediaType: ImageType;
  /** Total over all frames. */
  readonly pixels: number;
}

/** Rejects with the signal's reason, or with AppError `deadline_exceeded` if no decoder is free in time. */
export type CheckImage = (
  bytes: Buffer,
  accountId: string,
  signal: AbortSignal,
) => Promise<CheckedImage | ImageProblem>;

/**
 * Creates the check for untrusted images: they must be PNG, JPEG, WebP or GIF, of a reasonable size, and fully
 * decodable. A truncated animated GIF passes with the frames it has. Bytes after the end of an image are not removed;
 * they cannot harm a reader that treats the file as an image.
 */
export function createImageChecker(decoders = new Decoders()): CheckImage {
  return async (bytes, accountId, signal) => {
    // The first bytes decide whether the file is decoded at all, so SVG, PDF and the like never reach a decoder.
    const mediaType = sniffImageType(bytes);
    if (mediaType === null) return unknownImageType;
    return await decoders.use({ accountId, signal, waitMs: maxWaitMs }, (sharp) =>
      decode(sharp, bytes, mediaType),
    );
  };
}

async function decode(
  sharp: Sharp,
  bytes: Buffer,
  mediaType: ImageType,
): Promise<CheckedImage | ImageProblem> {
  try {
    const head = await inspectHead(sharp, bytes, { format: mediaType, countsFrames: true });
    if ('problem' in head) return head;
    // Outputs a single pixel per frame but decodes all of it: `fill` does not crop, so every row is decoded.
    await sharp(bytes, { ...decodeOptions, limitInputPixels: maxPixels, pages: -1 })
      .resize(1, 1, { fit: 'fill' })
      .timeout({ seconds: maxDecodeSeconds })
      .raw()
      .toBuffer();
    return { mediaType, pixels: head.pixels };
  } catch {
    // The decoder's message does not help a caller.
    return undecodable;
  }
}
