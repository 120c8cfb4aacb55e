// decision 0048
import { sniffImageType, type ImageType } from '../../shared/contract/image-type.ts';
import type { Decoders, ImageOrigin } from './decoders.ts';
import { unknownImageType, type ImageProblem } from './image-limits.ts';
import { readImageSize } from './read-image-size.ts';
import type { EncodedImage, OutputFormat } from './image-work.ts';

export interface ReencodedImage extends EncodedImage {
  readonly contentType: `image/${OutputFormat}`;
}

export interface ReencodeOptions {
  readonly accountId: string;
  readonly origin: ImageOrigin;
  readonly signal: AbortSignal;
  /** How long to wait for a decoder. */
  readonly waitMs: number;
  /** Null keeps the image's format, or uses PNG if that cannot be written (GIF). */
  readonly format: OutputFormat | null;
  /** 1 to 100, for JPEG and WebP. Null re-encodes without visible loss. */
  readonly quality: number | null;
}

/**
 * Re-encodes an image from its pixels, so that nothing else of the file remains: no EXIF location, colour
 * profile, text or trailing bytes. Applies the EXIF orientation first. Uses the first frame of an animation.
 * Rejects with the signal's reason, or with AppError `deadline_exceeded` if no decoder is free in time.
 */
export type ReencodeImage = (
  bytes: Buffer,
  options: ReencodeOptions,
) => Promise<ReencodedImage | ImageProblem>;

/** Re-encodes a photograph without visible loss. */
const fineQuality = 95;

export function createImageReencoder(decoders: Decoders): ReencodeImage {
  return async (bytes, { format: requestedFormat, quality: requestedQuality, ...options }) => {
    const type = sniffImageType(bytes);
    if (type === null) return unknownImageType;
    const size = readImageSize(bytes, type, { countsFrames: false });
    if ('problem' in size) return size;
    const format = requestedFormat ?? chooseFormat(type);
    const quality = Math.max(1, requestedQuality ?? fineQuality);
    const { pixels } = size;
    const result = await decoders.perform(
      { kind: 'reencode', bytes, type, format, quality },
      { ...options, pixels },
    );
    if (result === null) throw new TypeError('the decoder returned no image');
    return 'problem' in result ? result : { ...result, contentType: `image/${format}` };
  };
}

function chooseFormat(type: ImageType): OutputFormat {
  switch (type) {
    case 'image/jpeg':
      return 'jpeg';
    case 'image/webp':
      return 'webp';
    case 'image/png':
    case 'image/gif':
      return 'png';
    default:
      return type satisfies never;
  }
}
