import { sniffImageType, type ImageType } from '../../shared/contract/image-type.ts';
import type { Decoders } from './decoders.ts';
import { unknownImageType, type ImageProblem } from './image-limits.ts';
import { readImageSize } from './read-image-size.ts';

/** How long to wait for a decoder. */
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
export function createImageChecker(decoders: Decoders): CheckImage {
  return async (bytes, accountId, signal) => {
    // The first bytes decide whether the file is decoded at all, so SVG, PDF and the like never reach a decoder.
    const mediaType = sniffImageType(bytes);
    if (mediaType === null) return unknownImageType;
    const size = readImageSize(bytes, mediaType, { countsFrames: true });
    if ('problem' in size) return size;
    const { pixels } = size;
    const options = { accountId, signal, origin: 'caller', pixels, waitMs: maxWaitMs } as const;
    const result = await decoders.perform({ kind: 'check', bytes, type: mediaType }, options);
    return result !== null && 'problem' in result ? result : { mediaType, pixels };
  };
}
