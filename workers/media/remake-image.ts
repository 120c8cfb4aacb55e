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
  type ImageFault,
  type Sharp,
} from './decoders.ts';

/** Formats that images are encoded in. */
export type OutputFormat = NonNullable<ImageOptions['outputFormat']>;

export interface RemadeImage {
  readonly bytes: Buffer;
  readonly contentType: `image/${OutputFormat}`;
  readonly width: number;
  readonly height: number;
  readonly hasAlpha: boolean;
}

export interface RemakeOptions {
  readonly accountId: string;
  readonly signal: AbortSignal;
  /** How long to wait for a decoder. */
  readonly waitMs: number;
  /** Null for the image's own format, or PNG if that cannot be written (GIF). */
  readonly format: OutputFormat | null;
  /** 1 to 100, for JPEG and WebP. Null re-encodes with as little visible loss as is sensible. */
  readonly quality: number | null;
}

/**
 * Re-encodes an image from its pixels, so that nothing else of the file remains: no EXIF location, colour
 * profile, text or trailing bytes. Applies the EXIF orientation first. Uses the first frame of an animation.
 * Rejects with the signal's reason, or with AppError `deadline_exceeded` if no decoder is free in time.
 */
export type RemakeImage = (bytes: Buffer, options: RemakeOptions) => Promise<RemadeImage | ImageFault>;

export function createImageRemaker(decoders: Decoders): RemakeImage {
  return async (bytes, options) => {
    const type = sniffImageType(bytes);
    if (type === null) return unknownImageType;
    return await decoders.use(options, (sharp) => remake(sharp, bytes, type, options));
  };
}

/** Re-encodes a photograph without visible loss. */
const fineQuality = 95;
/**
 * From this quality on, JPEGs keep full colour resolution. Below it, that would make files larger than other
 * programs' files.
 */
const leastFullColourQuality = 90;

async function remake(
  sharp: Sharp,
  bytes: Buffer,
  type: ImageType,
  { format: wanted, quality: asked }: RemakeOptions,
): Promise<RemadeImage | ImageFault> {
  const format = wanted ?? ownFormat(type);
  const quality = Math.max(1, asked ?? fineQuality);
  const chromaSubsampling = quality < leastFullColourQuality ? '4:2:0' : '4:4:4';
  try {
    const head = await inspectHead(sharp, bytes, { format: type, countsFrames: false });
    if ('fault' in head) return head;
    const image = sharp(bytes, { ...decodeOptions, limitInputPixels: maxPixels })
      .autoOrient()
      .timeout({ seconds: maxDecodeSeconds });
    if (format === 'png') image.png({ adaptiveFiltering: true });
    else if (format === 'webp') image.webp({ quality });
    // JPEG has no transparency; without a background it would turn black.
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

function ownFormat(type: ImageType): OutputFormat {
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
