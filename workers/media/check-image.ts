import { sniffImageType, type ImageType } from '../../shared/contract/image-type.ts';
import {
  decodeOptions,
  Decoders,
  inspectHead,
  maxDecodeSeconds,
  maxPixels,
  undecodable,
  unknownImageType,
  type ImageFault,
  type Sharp,
} from './decoders.ts';

/** Decodes ahead of a waiting picture end within seconds. */
const maxWaitMs = 60_000;

export interface CheckedImage {
  readonly mediaType: ImageType;
  /** In all frames. */
  readonly pixels: number;
}

/** Rejects with the signal's reason, or with AppError `deadline_exceeded` where no decoder is free in time. */
export type CheckImage = (
  bytes: Buffer,
  accountId: string,
  signal: AbortSignal,
) => Promise<CheckedImage | ImageFault>;

/**
 * One process's check of strangers' pictures: that they are PNG, JPEG, WebP or GIF, of a bearable size, and can be
 * decoded to the last pixel; of an animated GIF that is cut off, the frames that are there. Bytes after the end of a
 * picture do no harm to who knows it for a picture, and stay.
 */
export function createImageChecker(decoders = new Decoders()): CheckImage {
  return async (bytes, accountId, signal) => {
    // The first bytes decide which decoder may see a picture at all: none of SVG, PDF or the like ever does.
    const mediaType = sniffImageType(bytes);
    if (mediaType === null) return unknownImageType;
    return await decoders.use({ accountId, signal, waitMs: maxWaitMs }, (sharp) =>
      decode(sharp, bytes, mediaType),
    );
  };
}

async function decode(sharp: Sharp, bytes: Buffer, mediaType: ImageType): Promise<CheckedImage | ImageFault> {
  try {
    const head = await inspectHead(sharp, bytes, { format: mediaType, countsFrames: true });
    if ('fault' in head) return head;
    // A single pixel of each frame is wanted, but of all of it: `fill` crops nothing, so no row is left undecoded.
    await sharp(bytes, { ...decodeOptions, limitInputPixels: maxPixels, pages: -1 })
      .resize(1, 1, { fit: 'fill' })
      .timeout({ seconds: maxDecodeSeconds })
      .raw()
      .toBuffer();
    return { mediaType, pixels: head.pixels };
  } catch {
    // What the decoder says is of no use to a caller.
    return undecodable;
  }
}
