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

/** Formats that images are written in. */
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
  /** For a decoder. */
  readonly waitMs: number;
  /** The image's own format where it is null; PNG for one that is never written, a GIF. */
  readonly format: OutputFormat | null;
  /** 1 to 100, of JPEG and WebP; null leaves as little to be seen of writing it anew as is sensible. */
  readonly quality: number | null;
}

/**
 * Makes an image anew from its pixels, so that nothing is left of the file: no EXIF with its place, no profile, no text, no
 * bytes behind the end. It is turned first as EXIF says that it is to be shown. Of an animation the first frame is taken.
 * Rejects with the signal's reason, or with AppError `deadline_exceeded` where no decoder is free in time.
 */
export type RemakeImage = (bytes: Buffer, options: RemakeOptions) => Promise<RemadeImage | ImageFault>;

export function createImageRemaker(decoders: Decoders): RemakeImage {
  return async (bytes, options) => {
    const type = sniffImageType(bytes);
    if (type === null) return unknownImageType;
    return await decoders.use(options, (sharp) => remake(sharp, bytes, type, options));
  };
}

/** Where a photograph is written a second time, this loses nothing that anybody sees. */
const fineQuality = 95;
/** From here on JPEGs keep the colours of each pixel; below it their files would be larger than those of other programs. */
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
    // JPEG knows no transparency; without a background it would turn black.
    else image.flatten({ background: 'white' }).jpeg({ quality, chromaSubsampling });
    const { data, info } = await image.toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    const hasAlpha = channels === 2 || channels === 4;
    return { bytes: data, contentType: `image/${format}`, width, height, hasAlpha };
  } catch {
    // What the decoder says is of no use to a caller.
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
