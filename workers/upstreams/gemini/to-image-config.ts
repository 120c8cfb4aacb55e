import type { JsonRecord } from '../json-value.ts';
import { readPictureShape } from '../picture-shape.ts';

/**
 * `imageConfig` of a size such as `1024x1536` and a quality such as `2K`; null where neither says anything to Gemini,
 * which knows pictures by their shape and their size class, never by pixels.
 */
export function toImageConfig(size: unknown, quality: unknown): JsonRecord | null {
  const { aspectRatio, sizeClass } = readPictureShape(size, quality);
  if (aspectRatio === null && sizeClass === null) {
    return null;
  }
  return {
    ...(aspectRatio === null ? {} : { aspectRatio }),
    ...(sizeClass === null ? {} : { imageSize: sizeClass }),
  };
}
