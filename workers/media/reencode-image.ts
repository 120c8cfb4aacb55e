import { sniffImageType, type ImageType } from '../../shared/contract/image-type.ts';
import type { ImageOptions } from '../../shared/queue/job-kinds.ts';
import {
  decodeOptions,
  inspectHead,
  maxDecodeSeconds,
  maxPixels,
  undecodable,
  unknownImageType,
  type Decoders,
  type ImageProblem,
  type Sharp,
} from './decoders.ts';

/** Formats that images are encoded in. */
export type OutputFormat = NonNullable<ImageOptions['outputFormat']>;

export interface ReencodedImage {
  readonly bytes: Buffer;
  readonly contentType: `image/${OutputFormat}`;
  readonly width: number;
  readonly height: number;
  readonly hasAlpha: boolean;
}

export interface ReencodeOptions {
  readonly accountId: string;
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

export function createImageReencoder(decoders: Decoders): ReencodeImage {
  return async (bytes, options) => {
    const type = sniffImageType(bytes);
    if (type === null) return unknownImageType;
    return await decoders.use(options, (sharp) => reencode(sharp, bytes, type, options));
  };
}

/** Re-encodes a photograph without visible loss. */
const fineQuality = 95;
/**
 * JPEGs of this quality or higher keep full colour resolution. At lower qualities, it would make them larger than those
 * of other programs.
 */
const minFullColourQuality = 90;

async function reencode(
  sharp: Sharp,
  bytes: Buffer,
  type: ImageType,
  { format: requestedFormat, quality: requestedQuality }: ReencodeOptions,
): Promise<ReencodedImage | ImageProblem> {
  const format = requestedFormat ?? chooseFormat(type);
  const quality = Math.max(1, requestedQuality ?? fineQuality);
  const chromaSubsampling = quality < minFullColourQuality ? '4:2:0' : '4:4:4';
  try {
    const head = await inspectHead(sharp, bytes, { format: type, countsFrames: false });
    if ('problem' in head) return head;
    const image = sharp(bytes, { ...decodeOptions, limitInputPixels: maxPixels })
      .autoOrient()
      .timeout({ seconds: maxDecodeSeconds });
    if (format === 'png') image.png({ adaptiveFiltering: true });
    else if (format === 'webp') image.webp({ quality });
    // JPEG has no transparency; without a background, transparent areas would turn black.
    else image.flatten({ background: 'white' }).jpeg({ quality, chromaSubsampling });
    const { data, info } = await image.toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    const hasAlpha = channels === 2 || channels === 4;
    return { bytes: data, contentType: `image/${format}`, width, height, hasAlpha };
  } catch {
    // The decoder's message does not help a caller.
    return undecodable;
  }
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
