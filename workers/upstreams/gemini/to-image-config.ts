import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readImageShape } from '../image-shape.ts';

/**
 * Builds `imageConfig` from a size such as `1024x1536` and a quality such as `2K`. Gemini accepts an aspect ratio and a
 * size class, but no pixels. Returns null if neither can be derived.
 */
export function toImageConfig(size: unknown, quality: unknown): JsonRecord | null {
  const { aspectRatio, sizeClass } = readImageShape(size, quality);
  if (aspectRatio === null && sizeClass === null) {
    return null;
  }
  return {
    ...(aspectRatio === null ? {} : { aspectRatio }),
    ...(sizeClass === null ? {} : { imageSize: sizeClass }),
  };
}
